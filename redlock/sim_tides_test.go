package redlock

import (
	"math/rand/v2"
	"time"

	"redlock-proxy/redlock/quorum"
)

// ebb takes a minority of the masters away, brings them back, and at once takes others
// away. So bare majorities hold the locks, and two such majorities have only one master in
// common.
func (s *simulation) ebb() {
	if !s.plan.tides {
		return
	}
	r := rand.New(rand.NewPCG(s.seed, 1))
	minority := len(s.masters) - quorum.Size(len(s.masters))
	order := r.Perm(len(s.masters))
	for s.over.Err() == nil {
		var back []func()
		for _, i := range order[:minority] {
			if m := s.masters[i]; m.claim() {
				back = append(back, s.withdraw(m, r.IntN(3)))
			}
		}
		sleep(s.over, between(r, 50*time.Millisecond, 800*time.Millisecond))
		for _, f := range back {
			f()
			time.Sleep(between(r, 1, 2*time.Millisecond))
		}
		stays := 60 * time.Millisecond
		if s.plan.heals {
			stays = 600 * time.Millisecond // so that copies are written
		}
		sleep(s.over, between(r, time.Millisecond, stays))
		order = append(order[minority:], order[:minority]...)
	}
}

// rain breaks connections, one after the other.
func (s *simulation) rain() {
	if !s.plan.rain {
		return
	}
	r := rand.New(rand.NewPCG(s.seed, 2))
	for sleep(s.over, between(r, time.Millisecond, 60*time.Millisecond)) {
		k := s.anyLink(r)
		s.log.note("rain on %s", k.name)
		k.cut()
	}
}

// withdraw takes a master away in one of three ways and returns how it comes back.
func (s *simulation) withdraw(m *fakeMaster, way int) func() {
	s.log.note("%s withdraws in way %d", m.name, way)
	var back func()
	switch way {
	case 0:
		m.stop()
		back = m.resume
	case 1:
		m.kill()
		back = func() { m.restart(true) }
	case 2:
		var silent []*link
		for _, p := range s.proxies {
			for _, k := range p.currentLinks() {
				if k.master == m {
					k.silence()
					silent = append(silent, k)
				}
			}
		}
		back = func() {
			for _, k := range silent {
				k.speak()
			}
		}
	}
	return func() {
		s.log.note("%s is back", m.name)
		back()
		m.unclaim()
	}
}
