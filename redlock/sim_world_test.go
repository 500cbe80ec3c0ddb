package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/sim"
	"redlock-proxy/redlock/toymaster"
)

// A simulation is several proxies over one set of toy masters, with clients and faults.
// One seed decides everything, also the order of all that happens at the same moment: all
// runs in one thread, in a sim.World.
//
// Masters restart, forget and are flushed, their clocks jump, and they run at different rates
// within the drift that validity allows for. A world with masters that forget has no locks
// without TTL: such a master could never be trusted again. The simulation leaves out what
// doc.go does not promise: one constant value used through several proxies, or through one
// that crashes, and one token kept through a change of proxies.
type simulation struct {
	simOptions
	seed    uint64
	plan    simPlan
	random  *rand.Rand // for building the world
	began   time.Time
	masters []*toymaster.Master
	claimed map[*toymaster.Master]bool // a fault uses it
	proxies []*simProxy
	world   *sim.World
	home    *loop.Loop // of what belongs to no proxy
	history *history
	over    chan struct{} // is closed when clients and faults must stop
	strikes []*strike
	rounds  map[string]time.Duration // when each client began each of its rounds

	counters map[string]*counted // by name
}

// simOptions say how a seed's world is run.
type simOptions struct {
	heals   bool       // the proxies heal, much faster than real ones
	deletes bool       // clients also release by runs that delete whatever they find
	counts  bool       // it is a world of counters (sim_counts_test.go)
	faults  []simFault // instead of those that the seed chose
	log     *simLog    // nil unless the run is traced
	cut     *simCut    // nil: all that the seed chose happens
	trace   *simTrace  // nil unless the specification is to check the run
}

// A simPlan is the kind of world that the seed chose.
type simPlan struct {
	masters  int
	proxies  int
	keys     []simKey
	clients  int // of each key
	faults   []simFault
	tides    bool          // minorities of masters take turns being away
	rain     bool          // connections break all the time
	pace     time.Duration // between faults, on average
	duration time.Duration
	retry    Retry
	jitter   time.Duration
}

// A simKey is a lock, and the way in which its clients use it.
type simKey struct {
	name  string
	style simStyle
	ttl   time.Duration
	// longest is the longest TTL of an extension.
	longest time.Duration
	proxy   int // the only one that its clients use; -1: any
	// round counts the locks without expiry that were given up, because nobody could know
	// whether they were released. Each has a name of its own.
	round *int
}

func (k simKey) current() []byte { return fmt.Appendf(nil, "%s.%d", k.name, *k.round) }

type simStyle uint8

const (
	randomTokens simStyle = iota // released by plain DEL
	scripted                     // released, and sometimes taken, by script
	constantValue
	noTTL
	constantNoTTL
	expireAfterwards // SETNX, then EXPIRE
	legacy           // SETNX with a timestamp, GET, GETSET, DEL
	styles
	counting // in worlds of counters only
)

func (s simStyle) String() string {
	return [...]string{"tokens", "scripts", "constant", "permanent", "constant permanent", "setnx+expire", "getset", "", "counting"}[s]
}

// expires tells whether a lock of this style ends by itself.
func (s simStyle) expires() bool { return s <= constantValue }

func drawPlan(r *rand.Rand) simPlan {
	p := simPlan{
		masters:  5,
		proxies:  1 + r.IntN(3),
		clients:  2 + r.IntN(3),
		tides:    r.IntN(3) != 0,
		pace:     between(r, 40*time.Millisecond, 500*time.Millisecond),
		duration: 12 * time.Second,
		retry:    Retry{Count: r.IntN(4)},
		jitter:   between(r, time.Millisecond, 8*time.Millisecond),
	}
	if r.IntN(4) == 0 {
		p.jitter = 30 * time.Millisecond // often too slow for the master timeout
	}
	if r.IntN(5) == 0 {
		p.masters = 3
	}
	p.rain = r.IntN(3) == 0
	if p.tides {
		p.pace *= 2
	}
	forgetful := !p.tides && r.IntN(2) == 0
	for i := range 1 + r.IntN(2) {
		k := simKey{name: fmt.Sprintf("lock:%d", i), style: drawStyle(r), proxy: -1, round: new(int)}
		if forgetful {
			// Without a TTL, a master that forgets can never be trusted again.
			k.style = simStyle(r.IntN(int(constantValue) + 1))
		}
		k.ttl = between(r, 150*time.Millisecond, time.Second)
		if r.IntN(6) == 0 {
			k.ttl = between(r, 25*time.Millisecond, 90*time.Millisecond)
		}
		k.longest = k.ttl
		if r.IntN(2) == 0 && k.style != scripted {
			k.longest = 2 * k.ttl
		}
		if k.style == constantValue || k.style == constantNoTTL {
			k.proxy = r.IntN(p.proxies)
		}
		p.keys = append(p.keys, k)
	}
	for _, f := range simFaults {
		if f.possible != nil && !f.possible(p) {
			continue
		}
		if f.forgets && forgetful || !f.forgets && r.IntN(2) == 0 {
			p.faults = append(p.faults, f)
		}
	}
	return p
}

// drawStyle prefers the styles that test most.
func drawStyle(r *rand.Rand) simStyle {
	switch n := r.IntN(int(styles) + 2); n {
	case int(styles):
		return randomTokens
	case int(styles) + 1:
		return constantValue
	default:
		return simStyle(n)
	}
}

// forgottenAfter is the time for which a master that lost its memory must stay away: the
// longest TTL, and the drift of the clocks.
func (p simPlan) forgottenAfter() time.Duration {
	longest := time.Duration(0)
	for _, k := range p.keys {
		longest = max(longest, k.longest)
	}
	return longest + longest/50 + 10*time.Millisecond
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)))
}

// newSimulation builds the world of a seed, in a bubble.
func newSimulation(seed uint64, o simOptions) *simulation {
	s := &simulation{
		simOptions: o,
		seed:       seed,
		random:     rand.New(rand.NewPCG(seed, 0)),
		began:      time.Now(),
		world:      sim.NewWorld(seed),
		history:    &history{},
		claimed:    map[*toymaster.Master]bool{},
		over:       make(chan struct{}),
		rounds:     map[string]time.Duration{},
	}
	s.home = s.world.Loop(slog.New(slog.DiscardHandler))
	s.plan = drawPlan(s.random)
	if o.counts {
		s.counterWorld()
	}
	if o.faults != nil {
		s.plan.faults = o.faults
	}
	if o.trace != nil {
		o.trace.begin(s)
	}
	for i := range s.plan.masters {
		m := newMaster(fmt.Sprintf("m%d", i+1))
		m.Clock.Rate = 1 + (s.random.Float64()-0.5)*0.006
		if s.log != nil {
			m.Watch = s.log.execution
		}
		if s.trace != nil {
			s.trace.watch(m)
		}
		s.masters = append(s.masters, m)
	}
	for i := range s.plan.proxies {
		p := &simProxy{name: fmt.Sprintf("p%d", i+1), heals: &healCounter{}}
		p.loop = s.world.Loop(slog.New(slog.DiscardHandler))
		s.proxies = append(s.proxies, p)
	}
	s.strikes = s.drawStrikes()
	return s
}

// run runs the world to its end.
func (s *simulation) run() {
	s.world.Run(s.play)
	s.world.Close()
}

// sleep waits for d of the world's time.
func (s *simulation) sleep(d time.Duration) { s.world.Wait(d) }

// pause is sleep, but ends when clients and faults must stop. It returns false then.
func (s *simulation) pause(d time.Duration) bool {
	return s.world.Wait(d, s.over) == loop.Late && !s.isOver()
}

func (s *simulation) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// play lets clients and faults act, then ends all faults, and checks that the locks can
// still be taken.
func (s *simulation) play() {
	for _, p := range s.proxies {
		s.start(p)
	}
	s.sleep(50 * time.Millisecond)
	s.world.After(s.duration(), func() { close(s.over) })
	var running sync.WaitGroup
	for i, k := range s.plan.keys {
		for c := range s.plan.clients {
			s.home.Spawn(&running, s.newClient(i, k, c).run)
		}
	}
	for _, x := range s.strikes {
		if !s.cut.leavesOut(x.name) {
			s.home.Spawn(&running, func() { s.strike(x) })
		}
	}
	s.home.Join(&running)
	s.trace.end()
	if s.cut == nil || !s.cut.ends {
		s.afterwards()
	}
	for _, p := range s.proxies {
		gone, cancel := context.WithCancel(context.Background())
		patience := s.world.After(time.Second, cancel)
		p.lock.Close(gone)
		patience.Cancel()
		cancel()
	}
}

func (s *simulation) duration() time.Duration {
	if s.cut != nil {
		return s.cut.until
	}
	return s.plan.duration
}

// afterwards runs when all faults are over. It checks that every proxy reaches every
// master, and that every lock that expires can be taken.
func (s *simulation) afterwards() {
	for _, p := range s.proxies {
		for _, k := range p.links {
			k.SetDelay(time.Millisecond, 0)
		}
	}
	// A master that a young process has not met joins, which takes twice RestartDelay and longer.
	s.sleep(16*time.Second + s.plan.forgottenAfter())
	if s.heals || s.counts {
		// There may be a world in which too few masters remember the longest TTL, and they
		// wait for the longest time.
		for range 60 {
			if !slices.ContainsFunc(s.proxies, func(p *simProxy) bool { return !p.lock.allVote() }) {
				break
			}
			s.sleep(time.Second)
		}
	}
	for _, p := range s.proxies {
		if up, all := p.lock.reachable(), len(s.masters); up != all {
			s.history.fail("%s reaches %d of %d masters when all is well", p.name, up, all)
		}
		for _, k := range s.plan.keys {
			if !k.style.expires() {
				continue
			}
			// At the first try, masters may be missing that still have debts. Or masters wait for
			// the longest time, because too few of the others remember what was granted.
			r := AcquireRequest{Key: k.current(), Value: []byte("who comes when all is over"), TTL: time.Minute}
			if o := p.lock.Acquire(context.Background(), r); o.Verdict == NoQuorum {
				s.sleep(p.lock.settings().MaxQuarantine + 10*time.Second)
			} else if o.Verdict == Won {
				p.lock.Release(context.Background(), ReleaseRequest{Key: r.Key})
			}
			if o := p.lock.Acquire(context.Background(), r); o.Verdict != Won {
				s.history.fail("%s is not free when nobody holds it: %s got %v", k.name, p.name, o.Verdict)
				continue
			}
			if o := p.lock.Release(context.Background(), ReleaseRequest{Key: r.Key}); o.Verdict != Won {
				s.history.fail("%s cannot be released when all is well: %s got %v", k.name, p.name, o.Verdict)
			}
		}
	}
	if s.counts {
		s.countersGoOn()
	}
}
