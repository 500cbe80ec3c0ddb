package integration

import (
	"context"
	"time"
)

// soakFault is one thing that goes wrong or is changed, from beginning to end.
type soakFault struct {
	name   string
	strike func(s *soak)
}

// soakFaults strike one at a time: a quorum is there between any two of them.
func soakFaults() []soakFault {
	return []soakFault{
		{"a master is killed and comes back empty", func(s *soak) {
			master := s.masters[s.random.IntN(masterCount)]
			master.crash()
			s.rest(0, time.Second)
			master.start(s.t)
		}},
		{"a master hangs", func(s *soak) {
			master := s.masters[s.random.IntN(masterCount)]
			master.pause()
			s.rest(100*time.Millisecond, 1500*time.Millisecond)
			master.resume()
		}},
		{"a master is flushed", func(s *soak) {
			s.operate(s.masters[s.random.IntN(masterCount)], "FLUSHALL")
		}},
		{"a master drops its connections", func(s *soak) {
			s.operate(s.masters[s.random.IntN(masterCount)], "CLIENT", "KILL", "TYPE", "normal")
		}},
		{"three masters hang", func(s *soak) {
			for _, master := range s.masters[:quorum] {
				master.pause()
			}
			s.rest(100*time.Millisecond, time.Second)
			for _, master := range s.masters[:quorum] {
				master.resume()
			}
		}},
		{"the upstream is restarted", func(s *soak) {
			s.upstream.crash()
			s.rest(0, 300*time.Millisecond)
			s.upstream.start(s.t)
		}},
		{"the upstream hangs", func(s *soak) {
			s.upstream.pause()
			s.rest(100*time.Millisecond, 500*time.Millisecond)
			s.upstream.resume()
		}},
		{"the upstream drops its connections", func(s *soak) {
			s.operate(s.upstream, "CLIENT", "KILL", "TYPE", "normal")
		}},
		{"the lock rules are changed and changed back", func(s *soak) {
			changed := s.options
			changed.rules = append([]string{soakMovingKeys}, lockRules...)
			changed.retryCount = 5
			s.moveKeys(changed)
			s.rest(0, time.Second)
			s.moveKeys(s.options)
		}},
		{"a bad configuration is refused", func(s *soak) {
			bad := s.options
			bad.restartDelay = time.Hour
			for _, p := range s.proxies {
				p.reload(s.t, bad, "refused")
				p.configure(s.t, s.options)
			}
		}},
	}
}

// soakMovingKeys are lock keys at times.
const soakMovingKeys = "soak-moving:*"

func (s *soak) moveKeys(options proxyOptions) {
	for _, p := range s.proxies {
		p.moveKeys(s.t, options)
	}
}

// operate does at a server what an operator might.
func (s *soak) operate(server *redisServer, command ...any) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	// The connection that asks may be among those that are dropped.
	_ = server.direct.Do(ctx, command...).Err()
}

func (s *soak) rest(least, most time.Duration) { pause(s.t.Context(), between(s.random, least, most)) }

// faults has each strike in a random order, again and again, until it is over
// and each has struck.
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
