package redlock

import (
	"math/rand/v2"
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/toymaster"
)

// drawTides takes a minority of the masters away, brings them back, and at once takes others
// away. So bare majorities hold the locks, and two such majorities have only one master in
// common.
func (s *simulation) drawTides(add func(kind string, at time.Duration, begin func(s *simulation, r *rand.Rand) (func(), time.Duration))) {
	r := s.random
	minority := s.plan.masters - quorum.Size(s.plan.masters)
	order := r.Perm(s.plan.masters)
	stays := 60 * time.Millisecond
	if s.heals {
		stays = 600 * time.Millisecond // so that copies are written
	}
	for at := time.Duration(0); at < s.plan.duration; {
		away, lasts := slices.Clone(order[:minority]), between(r, 50*time.Millisecond, 800*time.Millisecond)
		add("tide", at, func(s *simulation, r *rand.Rand) (func(), time.Duration) { return s.ebb(r, away), lasts })
		at += lasts + 4*time.Millisecond + between(r, time.Millisecond, stays)
		order = append(order[minority:], order[:minority]...)
	}
}

// ebb takes masters away and returns how they come back.
func (s *simulation) ebb(r *rand.Rand, masters []int) (end func()) {
	var back []func()
	for _, i := range masters {
		if way, m := r.IntN(3), s.masters[i]; s.claim(m) {
			back = append(back, s.withdraw(m, way))
		}
	}
	return func() {
		for _, f := range back {
			f()
			s.sleep(between(r, 1, 2*time.Millisecond))
		}
	}
}

// breakLink breaks the connections of one link.
func breakLink(s *simulation, r *rand.Rand) (func(), time.Duration) {
	k := s.anyLink(r)
	s.log.note("rain on %s", k.Name)
	k.Cut()
	return nil, 0
}

// withdraw takes a master away in one of three ways and returns how it comes back.
func (s *simulation) withdraw(m *toymaster.Master, way int) func() {
	s.log.note("%s withdraws in way %d", m.Name, way)
	var back func()
	switch way {
	case 0:
		m.Pause()
		back = m.Resume
	case 1:
		m.Kill()
		back = func() { m.Restart(true) }
	case 2:
		var silent []*toymaster.Link
		for _, p := range s.proxies {
			for _, k := range p.links {
				if k.Master == m {
					k.Mute()
					silent = append(silent, k)
				}
			}
		}
		back = func() {
			for _, k := range silent {
				k.Unmute()
			}
		}
	}
	return func() {
		s.log.note("%s is back", m.Name)
		back()
		s.unclaim(m)
	}
}
