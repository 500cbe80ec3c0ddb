package redlock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/redlock/toymaster"
)

// A simFault is something that goes wrong for a while. It returns a function that ends it,
// or nil if it ends by itself.
type simFault struct {
	name    string
	forgets bool // a master loses its memory
	// possible tells in which worlds it may strike; nil: in all.
	possible func(p simPlan) bool
	begin    func(s *simulation, r *rand.Rand) (end func(), lasts time.Duration)
}

var simFaults = []simFault{
	{name: fault.Cut, begin: cutLinks},
	{name: fault.Slow, begin: slowLink},
	{name: fault.Mute, begin: muteLink},
	{name: fault.Pause, begin: pauseMaster},
	{name: "strand", begin: strandMaster},
	{name: fault.Refuse, begin: refuseCommands},
	{name: fault.Restart, begin: restartMaster},
	{name: fault.Kill + fault.Proxy, begin: killProxy, possible: tokensOnly},
	{name: fault.Forget, forgets: true, begin: forgetMaster},
	{name: fault.Flush, forgets: true, begin: flushMaster},
	{name: fault.Jump, begin: jumpClock},
}

// tokensOnly excludes worlds with constant values. One constant value is safe with one
// proxy only, and a proxy that crashed and started again is another one.
func tokensOnly(p simPlan) bool {
	return !slices.ContainsFunc(p.keys, func(k simKey) bool { return k.proxy >= 0 })
}

// A strike is one fault at one time. The seed chooses all of them before the world begins,
// and each draws from a seed of its own. So the others stay the same if one is left out.
type strike struct {
	name  string
	at    time.Duration
	seed  uint64
	begin func(s *simulation, r *rand.Rand) (end func(), lasts time.Duration)
}

func (s *simulation) drawStrikes() (all []*strike) {
	r := s.random
	add := func(kind string, at time.Duration, begin func(s *simulation, r *rand.Rand) (func(), time.Duration)) {
		all = append(all, &strike{fmt.Sprintf("%s %d", kind, len(all)+1), at, r.Uint64(), begin})
	}
	if len(s.plan.faults) > 0 {
		for at := time.Duration(0); ; {
			if at += between(r, time.Millisecond, 2*s.plan.pace); at > s.plan.duration {
				break
			}
			f := s.plan.faults[r.IntN(len(s.plan.faults))]
			add(f.name, at, f.begin)
		}
	}
	if s.plan.tides {
		s.drawTides(add)
	}
	if s.plan.rain {
		for at := time.Duration(0); at < s.plan.duration; at += between(r, time.Millisecond, 60*time.Millisecond) {
			add("rain", at, breakLink)
		}
	}
	return all
}

// strike makes a fault, and ends it.
func (s *simulation) strike(x *strike) {
	if !s.pause(x.at) {
		return
	}
	end, lasts := x.begin(s, rand.New(rand.NewPCG(x.seed, 0)))
	if end != nil {
		s.pause(lasts)
		end()
	}
}

func (s *simulation) anyLink(r *rand.Rand) *toymaster.Link {
	links := s.proxies[r.IntN(len(s.proxies))].links
	return links[r.IntN(len(links))]
}

func (s *simulation) anyMaster(r *rand.Rand) *toymaster.Master {
	return s.masters[r.IntN(len(s.masters))]
}

// spell is the duration of a fault. Most last about as long as a ballot. Some last so long
// that a stream dials anew.
func (s *simulation) spell(r *rand.Rand) time.Duration {
	kind := r.IntN(20)
	if s.plan.tides {
		kind = 19 // enough masters are away already
	}
	switch kind {
	case 0:
		return between(r, 2*time.Second, 4*time.Second)
	case 1, 2, 3, 4:
		return between(r, 100*time.Millisecond, time.Second)
	}
	return between(r, 5*time.Millisecond, 120*time.Millisecond)
}

func cutLinks(s *simulation, r *rand.Rand) (func(), time.Duration) {
	for range 1 + r.IntN(3) {
		k := s.anyLink(r)
		s.log.note("cut %s", k.Name)
		k.Cut()
		s.sleep(between(r, 1, time.Millisecond))
	}
	return nil, 0
}

func slowLink(s *simulation, r *rand.Rand) (func(), time.Duration) {
	k := s.anyLink(r)
	delay, jitter := k.Delay, k.Jitter
	if delay > time.Millisecond {
		return nil, 0 // it is slow already
	}
	slow := between(r, 5*time.Millisecond, 150*time.Millisecond)
	s.log.note("%s is slow, %v", k.Name, slow)
	k.SetDelay(slow, jitter)
	return func() {
		s.log.note("%s is fast", k.Name)
		k.SetDelay(delay, jitter)
	}, s.spell(r)
}

func muteLink(s *simulation, r *rand.Rand) (func(), time.Duration) {
	k := s.anyLink(r)
	s.log.note("mute %s", k.Name)
	k.Mute()
	return func() {
		s.log.note("unmute %s", k.Name)
		k.Unmute()
	}, s.spell(r)
}

// claim reserves a master's process for one fault. A paused process is not restarted
// here.
func (s *simulation) claim(m *toymaster.Master) bool {
	if s.claimed[m] {
		return false
	}
	s.claimed[m] = true
	return true
}

func (s *simulation) unclaim(m *toymaster.Master) { delete(s.claimed, m) }

func pauseMaster(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	if !s.claim(m) {
		return nil, 0
	}
	s.log.note("pause %s", m.Name)
	m.Pause()
	return func() {
		s.log.note("%s goes on", m.Name)
		m.Resume()
		s.unclaim(m)
	}, s.spell(r)
}

// strandMaster pauses a master, breaks its connections, and lets it go on. Then the bytes
// in its buffers compete with those of the new connections.
func strandMaster(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	if !s.claim(m) {
		return nil, 0
	}
	s.log.note("%s is stranded", m.Name)
	m.Pause()
	s.sleep(between(r, time.Millisecond, 30*time.Millisecond))
	for _, p := range s.proxies {
		for _, k := range p.links {
			if k.Master == m && r.IntN(3) > 0 {
				k.Cut()
			}
		}
	}
	return func() {
		s.log.note("%s goes on", m.Name)
		m.Resume()
		s.unclaim(m)
	}, between(r, time.Millisecond, 100*time.Millisecond)
}

// Refusals of a master.
const (
	busy    = "BUSY Redis is busy running a script."
	unsaved = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."
	full    = "OOM command not allowed when used memory > 'maxmemory'."
)

func refuseCommands(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	if !s.claim(m) {
		return nil, 0
	}
	with := []string{busy, unsaved, full}[r.IntN(3)]
	s.log.note("%s refuses: %s", m.Name, with)
	m.Refuse(with)
	return func() {
		s.log.note("%s refuses no more", m.Name)
		m.Refuse("")
		s.unclaim(m)
	}, s.spell(r)
}

// restartMaster restarts a process that has all its keys on disk.
func restartMaster(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	if !s.claim(m) {
		return nil, 0
	}
	s.log.note("%s ends", m.Name)
	m.Kill()
	return func() {
		s.log.note("%s starts", m.Name)
		m.Restart(true)
		s.unclaim(m)
	}, min(s.spell(r), 500*time.Millisecond)
}

// forgetMaster restarts a process at once, without its keys.
func forgetMaster(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	if r.IntN(2) == 0 || !s.claim(m) {
		return nil, 0
	}
	s.log.note("%s ends and will forget", m.Name)
	m.Kill()
	return func() {
		s.log.note("%s starts empty", m.Name)
		m.Restart(false)
		s.unclaim(m)
	}, between(r, 1, 100*time.Millisecond)
}

func killProxy(s *simulation, r *rand.Rand) (func(), time.Duration) {
	if r.IntN(4) != 0 {
		return nil, 0
	}
	p := s.proxies[r.IntN(len(s.proxies))]
	s.log.note("kill %s, and it starts", p.name)
	s.kill(p)
	return nil, 0
}

func flushMaster(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	s.log.note("%s is flushed", m.Name)
	m.Flush()
	return nil, 0
}

func jumpClock(s *simulation, r *rand.Rand) (func(), time.Duration) {
	m := s.anyMaster(r)
	by := between(r, -3*time.Second, 3*time.Second)
	s.log.note("the clock of %s jumps by %v", m.Name, by)
	m.Jump(by)
	return nil, 0
}
