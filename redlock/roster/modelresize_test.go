package roster

import (
	"slices"
	"testing"
)

// Worlds in which the operator changes the number of masters, one at a time.

// resizeWorlds is the seed from which on the number of masters changes.
const resizeWorlds = 3_000_000

func (w *world) resizes() bool { return w.seed >= resizeWorlds }

func TestModelOfAnotherNumber(t *testing.T) {
	changes := 0
	steps, worlds := runWorlds(t, func(n uint64) uint64 { return resizeWorlds + n }, func(w *world) { changes += w.changes })
	t.Logf("%d steps in %d worlds, in which the number changed %d times", steps, worlds, changes)
	if changes < worlds {
		t.Errorf("the number changed only %d times in %d worlds", changes, worlds)
	}
}

// list makes some servers the present list.
func (w *world) list(at []*toyServer) {
	w.at, w.names, w.masters = slices.Clone(at), nil, len(at)
	w.full = append(slices.Clone(at), w.full[min(len(at), len(w.full)):]...)
	for _, s := range w.at {
		w.names = append(w.names, s.name)
	}
}

// resize makes a process that has the present list add a master or remove the last one. The others follow.
func (w *world) resize(p *process, f fault) {
	if w.now < w.changed || !slices.Equal(p.route, w.at) {
		return
	}
	place := w.masters
	if place > fewest && (f.what%2 == 0 || place == 6) {
		if !p.shrinks() {
			return
		}
		w.list(w.at[:place-1])
	} else {
		n := w.newServer(place, w.nextName(place))
		if place < len(w.full) && f.what%3 == 0 && w.full[place].up {
			n = w.full[place] // a server that was removed comes back
			n.texts[0] = ""   // the operator has deleted the key there, and in no other database
		}
		if !p.grows(n) {
			return
		}
		w.list(append(slices.Clone(w.at), n))
	}
	w.changes++
	list := w.at
	w.tells(func(q *process) {
		switch {
		case !slices.Equal(list, w.at):
		case len(q.names) > len(list):
			q.shrinks()
		case len(q.names) < len(list):
			q.grows(list[len(list)-1])
		}
	})
}

// grows does what a reload does with one more master.
func (p *process) grows(n *toyServer) bool {
	if p.paused || len(p.names) != n.place {
		return false
	}
	if _, ok := p.proposes(Change{Master: n.place, Name: n.name, Run: n.run, Marker: n.texts[0]}); !ok {
		return false
	}
	p.names, p.route, p.clocks, p.cut = append(p.names, n.name), append(p.route, n), append(p.clocks, toyClock{}), append(p.cut, false)
	p.r.Step(Listed{n.place, Server{Name: n.name}}, p.now())
	for db := range p.dbs {
		p.opens(Place{n.place, db})
	}
	return true
}

// shrinks does what a reload does with one master less.
func (p *process) shrinks() bool {
	place := len(p.names) - 1
	if p.paused {
		return false
	}
	if _, ok := p.proposes(Change{Master: place}); !ok {
		return false
	}
	for _, s := range p.streamsOf(place) {
		s.gen++
		s.up, s.left = false, true
		p.r.Step(Disconnected{s.place, NotConnected}, p.now())
	}
	p.streams = slices.DeleteFunc(p.streams, func(s *toyStream) bool { return s.place.Master == place })
	p.names, p.route, p.clocks, p.cut = p.names[:place], p.route[:place], p.clocks[:place], p.cut[:place]
	p.drain()
	return true
}
