package roster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
)

// Worlds in which the number of masters changes, by the word of operators who may contradict each
// other. Some processes get the present list, and some start with it. The others keep theirs.

// resizeWorlds is the seed from which on the number of masters changes.
const resizeWorlds = 3_000_000

func (w *world) resizes() bool { return w.seed >= resizeWorlds }

// losesChanges tells whether the only fault of a world is lostResize.
func (w *world) losesChanges() bool { return w.resizes() && !w.hasStory() && w.seed%6 == 5 }

// resizeWorldOf returns the seed of the n-th world. Every fourth has only one story.
func resizeWorldOf(n uint64) uint64 {
	if n%8 == 7 {
		return forgetWorlds + n/8
	}
	if n%4 == 3 {
		return storyWorlds + n/4
	}
	return resizeWorlds + n/4*3 + n%4
}

func TestModelOfAnotherNumber(t *testing.T) {
	steps, worlds, changes, agreed := 0, 0, 0, 0
	for n := uint64(0); steps < *modelSteps; n++ {
		seed := resizeWorldOf(n)
		w := newWorld(seed, nil)
		w.live()
		steps, worlds, changes = steps+w.steps, worlds+1, changes+len(w.numbers)
		if w.agreed {
			agreed++
		}
		if w.wrong != "" {
			skip := shrink(seed)
			t.Fatalf("world %d: %s\nafter %d steps of %d worlds; look with\n go test ./redlock/roster -run 'TestModel$' -v -model.seed=%d -model.skip=%s", seed, w.wrong, steps, worlds, seed, skip)
		}
	}
	t.Logf("%d steps in %d worlds, in which the number changed %d times; %d of them agreed on one in the end", steps, worlds, changes, agreed)
	if changes < worlds || agreed < worlds/4 {
		t.Errorf("the number changed only %d times in %d worlds, and %d of them agreed on one in the end", changes, worlds, agreed)
	}
}

// recorded is all that is on record on any server.
func (w *world) recorded() (joined members.List) {
	for _, s := range w.full {
		if m, ok := marker.Parse(s.texts[0]); ok {
			joined = joined.Together(m.Joined)
		}
	}
	return joined
}

// takeRecord makes the list on record the present list.
func (w *world) takeRecord() {
	n := 0
	recorded := w.recorded()
	for i := range recorded {
		if recorded.Has(i) {
			n = i + 1
		}
		m := members.Read(recorded.Who(i))
		if m.Name == "" && m.Run == "" && i < len(w.full) && w.full[i].joins(w.full[0]) {
			continue // a new set began with it
		}
		for j, s := range w.all {
			if named := s.name == m.Name || strings.HasPrefix(m.Run, s.name+"-run"); s.place == i && i <= len(w.full) && (named || m.Name == "" && m.Run == "" && j == i) {
				w.full = append(w.full[:i:i], append([]*toyServer{s}, w.full[min(i+1, len(w.full)):]...)...)
			}
		}
	}
	if n > 0 {
		w.list(min(n, len(w.full)))
	}
}

// contradicts tells whether a process reaches another server than is on record, at a place that its
// list no longer has. Operators named two servers for the place and then dropped it from their lists,
// so each process has its own join there for ever, until all are told of one of them (doc.go).
func (w *world) contradicts(p *process) bool {
	for i, s := range p.route {
		if i >= len(p.names) && i < len(w.full) && s != nil && s != w.full[i] {
			return true
		}
	}
	return false
}

// joins tells whether two servers are of one set.
func (s *toyServer) joins(o *toyServer) bool {
	m, ok := marker.Parse(s.texts[0])
	other, found := marker.Parse(o.texts[0])
	return ok && found && m.Set == other.Set
}

// list makes the first n servers the present list.
func (w *world) list(n int) {
	w.at, w.names, w.masters = slices.Clone(w.full[:n]), nil, n
	for _, s := range w.at {
		w.names = append(w.names, s.name)
	}
}

// resize reloads a process with a list of another length. Some of the others follow, and the servers
// of new places are new or were there before.
func (w *world) resize(p *process, f fault) {
	if f.what%8 >= 6 {
		w.contradict(f)
		return
	}
	n := 2 + f.what>>3%4
	list := w.longer(n, f.what>>8%2 == 0)
	if !p.want(list) {
		return
	}
	w.full = append(slices.Clone(list), w.full[min(n, len(w.full)):]...)
	w.list(n)
	for i, q := range w.procs {
		if q != p && (f.who>>i)&3 != 3 {
			w.after(w.between(0, 4*time.Second), func() {
				q.do(func() {
					if !w.peace && slices.Equal(list, w.at) {
						q.want(list)
					}
				})
			})
		}
	}
}

// longer returns the first n servers. It makes new ones where there are too few, or where a server that
// was removed shall not come back.
func (w *world) longer(n int, again bool) []*toyServer {
	list := slices.Clone(w.full[:min(n, len(w.full))])
	for i := len(list); i < n; i++ {
		list = append(list, w.newServer(i))
	}
	recorded := w.recorded()
	for i := range n {
		if i >= w.masters && !again {
			list[i] = w.newServer(i)
		} else if at := recorded.Stage(i); w.peace && at.Step == members.Proposed || at.Step == members.Absent && (w.peace || w.rng.IntN(2) == 0) {
			// The operator has deleted the key there, and in no other database. That may also be the key
			// of an earlier master, while somebody else proposes another server for its place.
			list[i].texts[0] = ""
		}
	}
	return list
}

// contradict makes each process change the number in its own way, at nearly the same moment. None
// reaches all masters, and some stand still.
func (w *world) contradict(f fault) {
	for len(w.procs) < 2 {
		w.startProcess(false)
	}
	for i, p := range slices.Clone(w.procs) {
		lasts := w.between(time.Second, 4*w.limits.Hold()+2*w.limits.MaxQuarantine)
		var cuts []int
		for place := range w.masters {
			if near := place < w.masters/2; f.what&32 != 0 && near == (i == 0) && w.rng.IntN(8) > 0 || w.rng.IntN(16) == 0 {
				cuts = append(cuts, place)
			}
		}
		if w.rng.IntN(4) == 0 {
			w.after(w.between(0, 2*w.limits.Hold()), func() {
				if !w.peace {
					p.standStill(lasts/2, false)
				}
			})
		}
		by := 1 + w.rng.IntN(4)/3
		w.after(w.between(0, 2*time.Millisecond), func() {
			p.do(func() {
				if w.peace {
					return
				}
				n := w.masters + by
				if (f.who>>i)&1 == 0 && f.what&32 == 0 || f.what&32 != 0 && i > 0 {
					n = w.masters - by
				}
				p.want(w.longer(min(max(n, 2), 6), w.rng.IntN(2) == 0))
			})
		})
		w.after(w.between(BeatLength, 2*time.Second), func() {
			for _, place := range cuts {
				w.cut(p, place, lasts)
			}
		})
	}
}

// lostResize adds two masters. A process reaches only one that does not hear of it. Then the others of
// the former number forget, and that process is the only one that reaches some of them.
func (w *world) lostResize(p *process, f fault) {
	q, n := w.startProcess(false), w.masters
	far := f.what >> 4 % n
	var near []int
	for i := range n {
		if i != far {
			near = append(near, i)
		}
	}
	step := w.resizeLasts()
	forgets := w.between(step, 3*step)
	lasts := forgets + 2*w.limits.MaxQuarantine + 2*w.limits.Hold()
	for _, i := range near {
		w.cut(p, i, forgets)
	}
	w.cutOthers(p, []int{far}, lasts)
	list := w.longer(n+2, false)
	w.after(time.Second, func() {
		q.do(func() {
			if !w.peace && len(w.at) == n && q.want(list) {
				w.full = list
			}
		})
	})
	w.after(forgets, func() {
		for _, i := range near {
			if s := w.full[i]; s.up && f.who>>i%4 != 0 {
				clear(s.texts)
				s.forgetAll(w)
			}
		}
		w.cutOthers(p, near[:1+f.who>>8%len(near)], 2*w.limits.MaxQuarantine)
		w.cut(p, n, lasts)
		w.cut(p, n+1, lasts)
	})
}

// resizeLasts is how long one step of a change may take with a quorum up: the server that is added
// joins, its quarantine ends, and then the change is held.
func (w *world) resizeLasts() time.Duration {
	return 2*w.limits.Hold() + 2*w.limits.MaxQuarantine + 2*w.limits.RestartDelay + worldSlack
}

// want does what a reload does with a list of another length. It tells whether the process can take it.
func (p *process) want(list []*toyServer) bool {
	for i := range min(len(list), len(p.names)) {
		if p.route[i] != list[i] {
			return false
		}
	}
	if p.paused {
		return false
	}
	for i := len(p.names); i < len(list); i++ {
		p.takes(list[i])
	}
	p.names = nil
	for _, s := range list {
		p.names = append(p.names, s.name)
	}
	err := p.r.Want(len(list))
	p.w.log("%s wants %v: %v", p.name, p.names, err)
	p.drain()
	return err == nil
}

// takes puts a server into the list of a process.
func (p *process) takes(n *toyServer) {
	if n.place < len(p.route) {
		if p.route[n.place] == n && p.r.joined.Has(n.place) {
			return // it was about to go
		}
		p.leaves(n.place)
		p.route[n.place], p.clocks[n.place], p.cut[n.place] = n, toyClock{}, false
	} else {
		p.route, p.clocks, p.cut = append(p.route, n), append(p.clocks, toyClock{}), append(p.cut, false)
	}
	p.r.SetServer(n.place, Server{Name: n.name})
	for db := range p.dbs {
		s := &toyStream{p: p, place: Place{n.place, db}}
		p.streams = append(p.streams, s)
		p.w.after(p.w.latency(), func() { p.do(s.dial) })
	}
}

// leaves ends the streams to a place.
func (p *process) leaves(place int) {
	for _, s := range p.streams {
		if s.place.Master == place {
			s.gen++
			s.up = false
		}
	}
	p.streams = slices.DeleteFunc(p.streams, func(s *toyStream) bool { return s.place.Master == place })
	p.r.Left(place)
}

// agreeOnNumber lets the operator tell all processes one number, and checks that it comes.
func (w *world) agreeOnNumber() {
	list := w.longer(2+w.rng.IntN(4), w.rng.IntN(2) == 0)
	steps := max(1, len(list)-w.masters, w.masters-len(list))
	w.full = append(slices.Clone(list), w.full[min(len(list), len(w.full)):]...)
	w.log("AGREE on %d", len(list))
	able := true
	for _, p := range w.procs {
		// Operators who named different servers have to mend that first.
		able = able && p.r.VotingIn(0).Len() == p.r.masters && p.want(list)
	}
	if !able {
		w.queue = nil
		return
	}
	w.agreed = true
	w.after(time.Duration(steps+1)*w.resizeLasts(), func() {
		w.judgePeace()
		for _, p := range w.procs {
			if w.wrong == "" && !w.divided && p.r.masters != len(list) {
				w.wrong = fmt.Sprintf("%s has %d masters after a long peace, and all were told %d: %+v %v", p.name, p.r.masters, len(list), p.r.change(p.now()), p.r.joined)
				w.log("%s", w.wrong)
			}
		}
		w.queue = nil
	})
}
