package redlock

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/sim"
	"redlock-proxy/redlock/toymaster"
)

// A simProxy is one process; a crash replaces its Locker.
type simProxy struct {
	name  string
	loop  *loop.Loop
	lock  *Locker
	links []*toymaster.Link
	runs  int
	heals *healCounter
}

// healCounter counts what a proxy's processes healed.
type healCounter struct {
	nobody
	healed [heal.TooLarge + 1]int
}

func (c *healCounter) Healed(_ string, did heal.Deed) { c.healed[did]++ }

// start gives a proxy a new Locker, like a process that starts.
func (s *simulation) start(p *simProxy) {
	cfg := Config{
		Loop:          p.loop,
		MasterTimeout: 50 * time.Millisecond,
		Retry:         s.plan.retry,
		ClockDrift:    0.01,
		RestartDelay:  2 * time.Second,
		Observer:      p.heals,
		New:           p.runs == 0, // as the world begins
		slept:         neverSuspended,
	}
	if s.heals || s.counts {
		cfg.MaxQuarantine = 20 * time.Second // see afterwards
	}
	if s.heals {
		draw := sim.Hash(s.seed, uint64(p.name[1]), 1000)
		cfg.Heal = Heal{
			Every:  time.Duration(1+draw%40) * time.Millisecond,
			Quiet:  time.Duration(1+draw/40%30) * time.Millisecond,
			Most:   1 << 10,
			Covers: func(_ int, key []byte) bool { return bytes.HasPrefix(key, []byte("lock:")) },
		}
	}
	p.runs++
	p.links = nil
	for i, m := range s.masters {
		k := toymaster.NewLink(fmt.Sprintf("%s.%d-%s", p.name, p.runs, m.Name), m, sim.Hash(s.seed, uint64(p.name[1]), uint64(i), uint64(p.runs)), s.world)
		if s.trace != nil {
			k.Sent = s.trace.sends
		}
		k.Delay, k.Jitter = 200*time.Microsecond, s.plan.jitter
		p.links = append(p.links, k)
		cfg.Masters = append(cfg.Masters, Master{Name: m.Name, Dial: func(ctx context.Context) (net.Conn, error) { return k.Dial(ctx) }})
	}
	l, err := New(cfg)
	if err != nil {
		panic(err)
	}
	p.lock = l
}

// kill ends a proxy at once, with all its memory, and starts it again.
func (s *simulation) kill(p *simProxy) {
	old := p.lock
	p.runs++ // from now on no client trusts the old one
	for _, k := range p.links {
		k.Cut()
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	old.Close(gone)
	s.start(p)
}
