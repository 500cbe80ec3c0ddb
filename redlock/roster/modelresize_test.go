package roster

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// Worlds in which the number of masters changes, by the word of operators who may contradict each
// other. Some processes get the present list, and some start with it. The others keep theirs.

// resizeWorlds is the seed from which on the number of masters changes.
const resizeWorlds = 3_000_000

func (w *world) resizes() bool { return w.seed >= resizeWorlds }

func TestModelOfAnotherNumber(t *testing.T) {
	steps, worlds, changes := 0, 0, 0
	for seed := uint64(resizeWorlds); steps < *modelSteps/2; seed++ {
		w := newWorld(seed, nil)
		w.live()
		steps, worlds, changes = steps+w.steps, worlds+1, changes+w.changes()
		if w.wrong != "" {
			skip := shrink(seed)
			t.Fatalf("world %d: %s\nafter %d steps of %d worlds; look with\n go test ./redlock/roster -run 'TestModel$' -v -model.seed=%d -model.skip=%s", seed, w.wrong, steps, worlds, seed, skip)
		}
	}
	t.Logf("%d steps in %d worlds, in which the number changed %d times", steps, worlds, changes)
	if changes < worlds/2 {
		t.Errorf("the number changed only %d times in %d worlds", changes, worlds)
	}
}

// changes counts the finished additions and removals on record.
func (w *world) changes() (n int) {
	for _, entry := range w.recorded() {
		_, at := marker.CutEntry(entry)
		if n += 2 * at.Round; at.Step == marker.Absent || at.Step == marker.Present && at.Round > 0 {
			n++
		}
	}
	return n
}

// recorded is all that is on record on any server.
func (w *world) recorded() (joined []string) {
	for _, s := range w.full {
		if m, ok := marker.Parse(s.texts[0]); ok {
			joined = marker.Together(joined, m.Joined)
		}
	}
	return joined
}

// takeRecord makes the list on record the present list.
func (w *world) takeRecord() {
	n := 0
	for i, entry := range w.recorded() {
		if _, at := marker.CutEntry(entry); at.Step != marker.Absent {
			n = i + 1
		}
	}
	if n > 0 {
		w.list(min(n, len(w.full)))
	}
}

// list makes the first n servers the present list.
func (w *world) list(n int) {
	w.at, w.names, w.masters = slices.Clone(w.full[:n]), nil, n
	for _, s := range w.at {
		w.names = append(w.names, s.name)
	}
}

// resize reloads a process with one more master or one less. Some of the others follow.
func (w *world) resize(p *process, f fault) {
	if f.what%8 >= 5 {
		w.contradict(f)
		return
	}
	grow := w.masters < 5 && (w.masters <= 2 || f.what%2 == 0)
	var n *toyServer
	if grow {
		n = w.newServer(w.masters)
	}
	if !p.resize(w.masters, n) {
		return
	}
	if grow {
		w.full = append(slices.Clone(w.full[:w.masters]), n)
		w.list(w.masters + 1)
	} else {
		w.list(w.masters - 1)
	}
	masters := w.masters
	for i, q := range w.procs {
		if q != p && (f.who>>i)&3 != 3 {
			w.after(w.between(0, 4*time.Second), func() {
				q.do(func() {
					if !w.peace && masters == w.masters && (n == nil || n == w.at[n.place]) {
						q.resize(len(q.names), n)
					}
				})
			})
		}
	}
}

// contradict makes each process change the number in its own way, at nearly the same moment. None
// reaches all masters, and some stand still.
func (w *world) contradict(f fault) {
	for len(w.procs) < 2 {
		w.startProcess(false)
	}
	for i, p := range slices.Clone(w.procs) {
		lasts := w.between(time.Second, 4*hold(w.limits)+2*w.limits.MaxQuarantine)
		var cuts []int
		for place := range w.masters {
			if near := place < w.masters/2; f.what&32 != 0 && near == (i == 0) && w.rng.IntN(8) > 0 || w.rng.IntN(16) == 0 {
				cuts = append(cuts, place)
			}
		}
		if w.rng.IntN(4) == 0 {
			w.after(w.between(0, 2*hold(w.limits)), func() {
				if !w.peace {
					p.standStill(lasts/2, false)
				}
			})
		}
		w.after(w.between(0, 2*time.Millisecond), func() {
			p.do(func() {
				masters := len(p.names)
				if w.peace {
					return
				}
				defer func() {
					for _, place := range cuts {
						w.cut(p, place, lasts)
					}
				}()
				if (f.who>>i)&1 == 0 && f.what&32 == 0 && masters > 2 || f.what&32 != 0 && i > 0 {
					p.resize(masters, nil)
				} else if masters < 6 {
					n := w.newServer(masters)
					if p.resize(masters, n) && masters <= len(w.full) {
						w.full = append(w.full[:masters:masters], n)
					}
				}
			})
		})
	}
}

// resize does what a reload does that names one more master, or one less.
func (p *process) resize(masters int, n *toyServer) bool {
	if p.paused || len(p.names) != masters {
		return false
	}
	if n == nil {
		if masters != p.r.masters || p.r.stage(masters-1).Step != marker.Present {
			return false
		}
		if err := p.r.Resizable(masters-1, p.now()); err != nil {
			p.w.log("%s: %v", p.name, err)
			return false
		}
		p.r.Remove(p.now())
		p.w.log("%s removes %s in epoch %d", p.name, p.names[masters-1], p.r.epoch)
		p.names = p.names[:masters-1]
		p.drain()
		return true
	}
	if n.place != masters {
		return false
	}
	if !p.r.isOnRecord(n.place) {
		if err := p.r.Resizable(masters+1, p.now()); err != nil || n.place != p.r.masters {
			p.w.log("%s: %v", p.name, err)
			return false
		}
		p.r.Add(n.name, n.run, p.now())
		p.w.log("%s adds %v in epoch %d", p.name, n, p.r.epoch)
	}
	for _, s := range p.streams { // those of a server that was removed
		if s.place.Master == n.place {
			s.gen++
			s.up = false
		}
	}
	p.streams = slices.DeleteFunc(p.streams, func(s *toyStream) bool { return s.place.Master == n.place })
	p.r.Left(n.place)
	p.r.SetServer(n.place, Server{Name: n.name})
	if p.names = append(p.names[:n.place:n.place], n.name); n.place == len(p.route) {
		p.route, p.clocks, p.cut = append(p.route, n), append(p.clocks, toyClock{}), append(p.cut, false)
	}
	p.route[n.place], p.clocks[n.place], p.cut[n.place] = n, toyClock{}, false
	for db := range p.w.dbs {
		s := &toyStream{p: p, place: Place{n.place, db}}
		p.streams = append(p.streams, s)
		p.w.after(p.w.latency(), func() { p.do(s.dial) })
	}
	p.drain()
	return true
}
