package roster

import (
	"time"

	"redlock-proxy/redlock/members"
)

// Worlds in which nothing happens but one story, mostly about the number of masters. By chance alone
// such stories are too rare: several processes have to be cut off at the moment of a decision, or one
// has to stand still just before it writes.

// storyWorlds is the seed from which on a world has only one story.
const storyWorlds = 4_000_000

func (w *world) hasStory() bool { return w.seed >= mendWorlds && !w.resizes() || w.seed >= storyWorlds }

// mendWorlds is the seed from which on a process stands still before it mends a master.
const mendWorlds = 2_500_000

// swapWorlds is the seed from which on the only fault of a world is swapBack.
const swapWorlds = 2_750_000

// forgetWorlds is the seed from which on a master forgets what the next number granted.
const forgetWorlds = 5_000_000

// story returns the only fault of the world.
func (w *world) story() faultKind {
	if !w.resizes() {
		return []faultKind{lateMend, swapBack}[w.seed/swapWorlds]
	}
	if w.seed >= forgetWorlds {
		return []faultKind{lateForget, lateTell}[w.seed%2]
	}
	return []faultKind{lateContradiction, lateLock}[w.seed%2]
}

// only leaves so many processes, which have seen no jump, and nobody else has wishes.
func (w *world) only(n int) []*process {
	for len(w.procs) > n {
		w.procs[len(w.procs)-1].stop()
	}
	for len(w.procs) < n {
		w.startProcess(false)
	}
	return append([]*process(nil), w.procs...)
}

// cutNow keeps a process from a place, and what is under way is lost.
func (w *world) cutNow(p *process, places ...int) {
	for _, place := range places {
		w.cut(p, place, time.Hour)
	}
}

// reaches ends cutNow.
func (p *process) reaches(place int) {
	if place < len(p.cut) {
		p.cut[place] = false
	}
}

// once waits until something is so, and then does what follows. It gives up in peace.
func (w *world) once(is func() bool, do func()) {
	switch {
	case w.peace:
	case is():
		do()
	default:
		w.after(time.Millisecond, func() { w.once(is, do) })
	}
}

// storyLasts is how long a story may take.
func (w *world) storyLasts() time.Duration {
	if !w.resizes() {
		return 4 * w.limits.MaxQuarantine
	}
	return 3 * w.resizeLasts()
}

// lateMend has a master forget. A process sees that, reads the others, and stands still just before it
// writes. Meanwhile another one mends the master, grants a long lock, and ends, and the master forgets
// again. Then the first process goes on. Perhaps its clocks stood still, too. Or all masters forget at
// first, and both processes have just started.
func (w *world) lateMend(f fault) {
	begins, suspended := f.what&1 != 0, f.what&2 != 0
	at := Place{1 + f.what>>2%2, 0}
	both := w.only(2)
	w.after(6*time.Second, func() {
		forget := w.at[at.Master : at.Master+1]
		if begins {
			w.only(0)
			both, forget = w.only(2), w.at
		} else {
			w.cutNow(both[1], at.Master)
		}
		for _, s := range forget {
			clear(s.texts)
			s.forgetAll(w)
		}
		p, q := both[0], both[1]
		mayWrite := func() bool {
			s, first := p.r.views[at], p.r.views[Place{}]
			if begins {
				return s != nil && s.blank && first.present() && p.r.set == ""
			}
			return s.absent() && p.r.readSince(at, s.since.Add(w.limits.MasterTimeout)) == 2
		}
		w.once(mayWrite, func() {
			goesOn := p.halts(suspended)
			q.reaches(at.Master)
			w.once(func() bool { return q.r.VotingIn(0).Has(at.Master) }, func() {
				q.askFor(true, -1)
				w.after(w.between(w.limits.MasterTimeout, time.Second), func() {
					q.stop()
					clear(w.at[at.Master].texts)
					w.at[at.Master].forgetAll(w)
					goesOn()
				})
			})
		})
	})
}

// swapBack has a database of a master change places with one that no process uses. When the master is
// mended, locks are granted for a moment. Then the two change back.
func (w *world) swapBack(s *toyServer, f fault) {
	at := Place{s.place, f.what >> 2 % w.dbs}
	p := w.only(1 + f.what%2)[0]
	w.after(6*time.Second, func() {
		if f.what&2 != 0 {
			s.texts[w.dbs] = ""
			s.forget(w, w.dbs)
		}
		s.swap(at.DB, w.dbs)
		w.after(2*BeatPause, func() {
			w.once(func() bool { return p.r.VotingIn(at.DB).Has(at.Master) }, func() {
				w.after(w.between(500*time.Millisecond, 2*time.Second), func() { s.swap(at.DB, w.dbs) })
			})
		})
	})
}

// lateContradiction has one process add a master to four, and another remove one, at the same moment.
// The second reaches only one master, which the first does not reach. While the first waits, the
// second gets one of its masters. Half of the masters are left to each.
func (w *world) lateContradiction(f fault) {
	both := w.only(2)
	p, q := both[0], both[1]
	order := w.rng.Perm(3) // the last master is the one to be removed
	x, y, z := order[0], order[1], order[2]
	more, fewer := w.longer(5, false), w.full[:3]
	w.after(6*time.Second, func() {
		p.do(func() { p.want(more) })
		q.do(func() { q.want(fewer) })
		w.after(1500*time.Microsecond, func() {
			w.cutNow(p, x)
			w.cutNow(q, y, z, 3)
		})
	})
	longest := w.limits.ResizeHold(p.r.granted(p.now())) + w.limits.RestartDelay
	w.after(6*time.Second+w.between(longest/4, 2*longest), func() {
		w.log("%s loses %v, and %s gets it", p.name, w.at[y], q.name)
		w.cutNow(p, y)
		q.reaches(y)
	})
}

// lateForget adds a master to four. The deciding process grants a long lock on two of them and on the
// new one. Then one of those two forgets. Another process, which knows only that the number is about
// to change, gets that master back, and does not reach the two that know the lock.
func (w *world) lateForget(f fault) {
	both := w.only(2)
	p, q := both[0], both[1]
	order := w.rng.Perm(4)
	x, y, z, v := order[0], order[1], order[2], order[3]
	list := w.longer(5, false)
	w.after(6*time.Second, func() {
		q.do(func() { q.want(list) })
		w.full = list
		w.list(5)
	})
	tell := func() {
		w.cutNow(q, x)
		clear(w.at[x].texts)
		w.at[x].forgetAll(w)
		p.reaches(x)
	}
	grant := func() {
		w.cutNow(q, z, v)
		w.after(w.between(300*time.Millisecond, time.Second), func() { q.do(func() { q.askFor(true, -1) }) })
		w.after(w.between(1200*time.Millisecond, 2*time.Second), tell)
	}
	w.once(func() bool { return q.r.joined.Stage(4).Step == members.Entering }, func() {
		w.cutNow(p, x, y, 4)
		w.once(func() bool { return q.r.masters == 5 }, grant)
	})
}

// lateTell adds a master to three. Just before the decision a process grants a long lock on two
// of them. Then one of those forgets. A process that saw it shortly before, and reaches only the third
// and the new one, tells it who the masters are.
func (w *world) lateTell(f fault) {
	all := w.only(3)
	p, q, s := all[0], all[1], all[2]
	order := w.rng.Perm(3)
	x, y, z := order[0], order[1], order[2]
	list := w.longer(4, false)
	w.after(6*time.Second, func() {
		for _, one := range []*process{p, s} {
			one.do(func() { one.want(list) })
		}
		w.full = list
		w.list(4)
	})
	tell := func() {
		w.cutNow(p, x)
		clear(w.at[x].texts)
		w.at[x].forgetAll(w)
		if !w.isWitness(q) {
			q.stop()
		}
		s.reaches(x)
	}
	soon := func() bool {
		v := p.r.views[Place{3, 0}]
		return v != nil && v.told.State == Quarantined && v.told.Until.Sub(p.now()) < 300*time.Millisecond
	}
	w.after(7*time.Second, func() {
		w.once(soon, func() {
			w.cutNow(s, x, y)
			w.cutNow(q, z)
			q.do(func() { q.askFor(true, -1) })
			w.once(func() bool { return p.r.masters == 4 }, func() { w.after(w.between(50*time.Millisecond, time.Second), tell) })
		})
	})
}

// lateLock adds a master to three. At the moment of a decision a process grants a long lock by the
// number before, on a master that the deciding process does not reach and one that forgets then.
// Whoever tells that one again has not read of the lock.
func (w *world) lateLock(f fault) {
	all := w.only(3)
	p, q, s := all[0], all[1], all[2]
	order := w.rng.Perm(3)
	x, y, z := order[0], order[1], order[2]
	list := w.longer(4, false)
	again, tells := f.what&1 != 0, p
	if f.what&2 != 0 {
		tells = s
	}
	w.after(6*time.Second, func() {
		for _, one := range []*process{p, s} {
			one.do(func() { one.want(list) })
		}
		w.full = list
		w.list(4)
	})
	w.after(7*time.Second, func() {
		w.cutNow(p, z)
		w.cutNow(s, z)
		w.cutNow(q, x)
	})
	grant := func() {
		w.cutNow(p, y)
		w.cutNow(s, y)
		w.after(w.between(0, 30*time.Millisecond), func() { q.do(func() { q.askFor(true, -1) }) })
		w.after(w.between(100*time.Millisecond, time.Second), func() {
			if server := w.at[y]; server.up {
				clear(server.texts)
				server.forgetAll(w)
			}
			if !w.isWitness(q) {
				q.stop()
			}
			if tells == s && !w.isWitness(p) {
				p.stop()
			}
			tells.reaches(y)
		})
	}
	entering := func() bool { return p.r.joined.Stage(3).Step == members.Entering || p.r.masters == 4 }
	w.after(7*time.Second, func() {
		w.once(entering, func() {
			if !again {
				w.after(w.between(0, 10*time.Millisecond), grant)
				return
			}
			w.after(w.between(5*time.Millisecond, 20*time.Millisecond), func() {
				w.cutNow(p, y)
				w.cutNow(s, y)
			})
			w.after(w.between(500*time.Millisecond, 1500*time.Millisecond), func() {
				p.reaches(y)
				w.once(func() bool { return p.r.masters == 4 }, grant)
			})
		})
	})
}
