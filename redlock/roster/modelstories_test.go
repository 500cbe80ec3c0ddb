package roster

import "time"

// Worlds in which nothing happens but one story. By chance alone such stories are too rare: a process has to stand still
// just before it writes.

func (w *world) hasStory() bool { return w.seed >= mendWorlds && !w.resizes() }

// mendWorlds is the seed from which on a process stands still before it mends a master.
const mendWorlds = 2_500_000

// swapWorlds is the seed from which on the only fault of a world is swapBack.
const swapWorlds = 2_750_000

// story returns the only fault of the world.
func (w *world) story() faultKind { return []faultKind{lateMend, swapBack}[w.seed/swapWorlds] }

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
func (w *world) storyLasts() time.Duration { return 4 * w.limits.MaxQuarantine }

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
			w.once(func() bool { return q.r.are(0, Voting).Has(at.Master) }, func() {
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
			w.once(func() bool { return p.r.are(at.DB, Voting).Has(at.Master) }, func() {
				w.after(w.between(500*time.Millisecond, 2*time.Second), func() { s.swap(at.DB, w.dbs) })
			})
		})
	})
}
