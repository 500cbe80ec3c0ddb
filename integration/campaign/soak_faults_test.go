package campaign

import (
	"context"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/integration/rig"
)

// soakFault is one failure or change, from its beginning to its end.
type soakFault struct {
	name   string
	strike func(s *soak)
}

// soakFaults strike one at a time. Between any two of them there is a quorum.
func soakFaults() []soakFault {
	return []soakFault{
		{fault.Forget, func(s *soak) {
			master := s.Masters[s.random.IntN(rig.MasterCount)]
			master.Kill()
			s.rest(0, time.Second)
			master.Start(s.t)
		}},
		{fault.Pause, func(s *soak) {
			master := s.Masters[s.random.IntN(rig.MasterCount)]
			master.Pause()
			s.rest(100*time.Millisecond, 1500*time.Millisecond)
			master.Resume()
		}},
		{fault.Flush, func(s *soak) {
			s.operate(s.Masters[s.random.IntN(rig.MasterCount)], "FLUSHALL")
		}},
		{fault.Cut, func(s *soak) {
			s.operate(s.Masters[s.random.IntN(rig.MasterCount)], "CLIENT", "KILL", "TYPE", "normal")
		}},
		{fault.Pause + " three", func(s *soak) {
			for _, master := range s.Masters[:rig.Quorum] {
				master.Pause()
			}
			s.rest(100*time.Millisecond, time.Second)
			for _, master := range s.Masters[:rig.Quorum] {
				master.Resume()
			}
		}},
		{fault.Forget + fault.Upstream, func(s *soak) {
			s.Upstream.Kill()
			s.rest(0, 300*time.Millisecond)
			s.Upstream.Start(s.t)
		}},
		{fault.Pause + fault.Upstream, func(s *soak) {
			s.Upstream.Pause()
			s.rest(100*time.Millisecond, 500*time.Millisecond)
			s.Upstream.Resume()
		}},
		{fault.Cut + fault.Upstream, func(s *soak) {
			s.operate(s.Upstream, "CLIENT", "KILL", "TYPE", "normal")
		}},
		{"the lock rules are changed and changed back", func(s *soak) {
			changed := s.options
			changed.Rules = append([]string{soakMovingKeys}, rig.LockRules...)
			changed.RetryCount = 5
			s.moveKeys(changed)
			s.rest(0, time.Second)
			s.moveKeys(s.options)
		}},
		{"a bad configuration is refused", func(s *soak) {
			bad := s.options
			bad.RestartDelay = time.Hour
			for _, p := range s.proxies {
				p.Reload(s.t, bad, "refused")
				p.Configure(s.t, s.options)
			}
		}},
	}
}

// soakMovingKeys are lock keys under some of the configurations.
const soakMovingKeys = "soak-moving:*"

func (s *soak) moveKeys(options rig.Options) {
	for _, p := range s.proxies {
		p.MoveKeys(s.t, options)
	}
}

// operate sends a server an operator's command.
func (s *soak) operate(server *rig.Server, command ...any) {
	ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
	defer cancel()
	// The command may drop the connection that it came by.
	_ = server.Direct.Do(ctx, command...).Err()
}

func (s *soak) rest(least, most time.Duration) {
	rig.Pause(s.t.Context(), rig.Between(s.random, least, most))
}

// faults lets the faults strike in random order, again and again, until the time is over and
// each has struck.
func (s *soak) faults(over time.Time) {
	deck := soakFaults()
	for round := 0; round == 0 || time.Now().Before(over); round++ {
		s.random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		for _, fault := range deck {
			if round > 0 && time.Now().After(over) {
				return
			}
			fault.strike(s)
			s.struck[fault.name]++
			s.rest(0, time.Second)
		}
	}
}
