package roster

import (
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
)

// A fault is what happens to a world, drawn before it begins, so that it can be
// left out.
type fault struct {
	at, lasts time.Duration
	kind      faultKind
	who, what int
}

type faultKind int

const (
	crash faultKind = iota
	crashEmpty
	crashOld
	flushAll
	flushDB
	swap
	clockForward
	clockBack
	cutOff
	startAnother
	stopOne
	restartOne
	standStill
	suspend
	powerLoss
	save
	promote
	badTime
	replicate
	faultKinds
	otherServer
)

func (k faultKind) String() string {
	return [...]string{"crash", "crash, back empty", "crash, back with old data", "FLUSHALL", "FLUSHDB", "SWAPDB", "clock forward", "clock back",
		"cut", "start a process", "stop a process", "restart a process", "a process stands still", "a process is suspended", "power loss", "snapshot",
		"promotion", "a bad source of time", "a replica for a moment", "", "another server under the name"}[k]
}

func (w *world) drawFaults() {
	at := 4 * time.Second
	kinds := w.rng.Perm(int(faultKinds))[:1+w.rng.IntN(6)]
	switch {
	case w.moves:
		kinds = append(kinds, int(promote), int(promote))
	case w.rng.IntN(5) == 0:
		// Masters that forget meanwhile could not be told from other servers.
		kinds = []int{int(cutOff), int(standStill), int(startAnother), int(restartOne), int(stopOne), int(save), int(otherServer)}
	}
	for range 3 + w.rng.IntN(10) {
		at += w.between(0, 4*time.Second) * time.Duration(w.rng.IntN(2))
		at += w.between(0, 300*time.Millisecond)
		f := fault{at: at, kind: faultKind(kinds[w.rng.IntN(len(kinds))]), who: w.rng.IntN(1 << 16), what: w.rng.IntN(1 << 16)}
		f.lasts = w.between(10*time.Millisecond, 2*time.Second)
		if w.rng.IntN(3) == 0 {
			f.lasts = w.between(2*time.Second, 12*time.Second)
		}
		w.faults = append(w.faults, f)
	}
}

func (w *world) strike(i int, f fault) {
	place := f.who % w.masters
	server := w.at[place]
	var p *process
	if len(w.procs) > 0 {
		p = w.procs[f.what%len(w.procs)]
	}
	w.log("FAULT %d: %v %v %v for %v", i, f.kind, server, name(p), f.lasts)
	switch f.kind {
	case crash, crashEmpty, crashOld:
		w.crash(server, f.kind, f.lasts)
	case powerLoss:
		for _, s := range w.at {
			w.crash(s, faultKind(f.what%3), f.lasts)
		}
	case flushAll:
		clear(server.texts)
		server.forgetAll(w)
	case flushDB:
		db := f.what % w.dbs
		server.texts[db] = ""
		server.forget(w, db)
	case swap:
		if w.dbs > 1 {
			server.texts[0], server.texts[1] = server.texts[1], server.texts[0]
			server.memory[0], server.memory[1] = server.memory[1], server.memory[0]
		}
	case clockForward:
		if !w.slow && server.up && server.jumped == nil && p != nil && w.sees(p, place) && w.now-server.back > 3*time.Second {
			server.ahead += w.between(3*time.Second, 20*time.Second)
			server.forgetAll(w)
			server.jumped = p
		}
	case clockBack:
		if server.jumped == nil {
			server.back = w.now
			server.ahead -= w.between(100*time.Millisecond, 20*time.Second)
		}
	case cutOff:
		if p != nil && !w.isWitness(p) && !p.cut[place] {
			p.cut[place] = true
			for _, s := range p.streams {
				if s.place.Master == place {
					s.breaks(w.between(10*time.Millisecond, 2*time.Second))
				}
			}
			w.after(f.lasts, func() { p.cut[place] = false })
		}
	case startAnother:
		if len(w.procs) < 4 {
			w.startProcess(false)
		}
	case stopOne, restartOne:
		if p != nil && !w.isWitness(p) {
			p.stop()
			if f.kind == restartOne {
				w.startProcess(false)
			}
		}
	case standStill, suspend:
		if p != nil && !w.isWitness(p) && !p.paused {
			p.paused = true
			w.after(f.lasts, func() {
				if f.kind == suspend {
					p.lag += f.lasts
				}
				p.resume()
			})
		}
	case save:
		server.saved = slices.Clone(server.texts)
	case promote:
		if w.moves {
			w.promote(server, f)
		}
	case otherServer:
		w.otherServer(server)
	case badTime:
		if !w.slow && p != nil {
			w.jumpTogether(p, f)
		}
	case replicate:
		server.repl = Replication{ID: fmt.Sprintf("id%d", i), Was: true}
		server.forgetAll(w)
	}
}

func name(p *process) string {
	if p == nil {
		return "nobody"
	}
	return p.name
}

// crash ends a server's process, and starts another in a while.
func (w *world) crash(s *toyServer, kind faultKind, lasts time.Duration) {
	if !s.up {
		return
	}
	s.up, s.jumped = false, nil
	for _, p := range w.procs {
		for _, c := range p.streams {
			if c.up && c.server == s {
				c.breaks(w.latency())
			}
		}
	}
	w.after(lasts, func() { w.comeBack(s, kind) })
}

func (w *world) comeBack(s *toyServer, kind faultKind) {
	if s.up {
		return
	}
	switch kind {
	case crashEmpty:
		clear(s.texts)
	case crashOld:
		copy(s.texts, s.saved)
	}
	s.start()
	s.forgetAll(w)
	w.log("%v is back", s)
}

// sees tells whether a process watches the clock of the server at a place.
func (w *world) sees(p *process, place int) bool {
	s := p.stream(Place{place, 0})
	return s.up && s.valid && s.server == w.at[place] && s.server.up && p.clocks[place].calibrated && !p.paused && !p.cut[place]
}

// isWitness: the process has seen a jump, or is about to, that nobody else may know
// of. A jump that nobody lives to see is not noticed; that is no promise.
func (w *world) isWitness(p *process) bool {
	return slices.ContainsFunc(w.all, func(s *toyServer) bool { return s.jumped == p })
}

// promote makes a replica the master of a place, always the same: where more places
// than N-Q lead to other servers for some processes, nobody could tell.
func (w *world) promote(s *toyServer, f fault) {
	if w.promoted != nil && w.promoted.place != s.place {
		return
	}
	if s.saved[0] == "" {
		copy(s.saved, s.texts)
	}
	w.promoted = s
	n := s.promote(w, fmt.Sprintf("%s%d", s.name[:1], len(w.all)))
	w.at[s.place] = n
	w.all = append(w.all, n)
	for i, p := range w.procs {
		if (f.what>>i)&3 == 3 {
			continue // it hears nothing of that for a long time
		}
		w.after(w.between(0, 2*time.Second), func() {
			p.route[s.place] = n
			if f.what%2 == 0 {
				for _, c := range p.streams {
					if c.place.Master == s.place {
						c.breaks(0)
					}
				}
			}
		})
	}
	if f.what%3 == 0 {
		w.crash(s, crash, f.lasts)
	}
}

// otherServer has a process started with another server in a place. Those that run
// know the one before, which lives on.
func (w *world) otherServer(s *toyServer) {
	if len(w.all) > w.masters {
		return // two at once could not be told from masters that were restarted
	}
	n := &toyServer{place: s.place, name: s.name + "2", texts: make([]string, w.dbs), memory: make([]int, w.dbs), saved: make([]string, w.dbs)}
	n.repl.ID = "first-" + n.name
	n.start()
	n.forgetAll(w)
	w.at[s.place] = n
	w.all = append(w.all, n)
	w.startProcess(false)
}

// jumpTogether has the clocks of all masters but one jump, which a process sees.
func (w *world) jumpTogether(p *process, f fault) {
	spared := f.who % w.masters
	for i, s := range w.at {
		if i != spared && (s.jumped != nil || w.now-s.back <= 3*time.Second || !w.sees(p, i)) || i == spared && !w.sees(p, i) {
			return
		}
	}
	by := w.between(3*time.Second, 20*time.Second)
	for i, s := range w.at {
		if i != spared {
			s.ahead += by
			s.forgetAll(w)
			s.jumped = p
		}
	}
}

// makePeace ends all faults. A minority may stay away.
func (w *world) makePeace() {
	w.log("PEACE")
	w.peace = true
	away := w.rng.IntN(w.masters - quorum.Size(w.masters) + 1)
	for _, p := range w.procs {
		clear(p.cut)
		if p.paused {
			p.resume()
		}
		copy(p.route, w.at)
		for _, s := range p.streams {
			if s.up && s.server != w.at[s.place.Master] {
				s.breaks(0)
			}
		}
	}
	sets := map[string]int{}
	for _, s := range w.at {
		m, _ := ParseMarker(s.texts[0])
		sets[m.Set]++
	}
	if sets[""] == w.masters {
		away = 0 // a new set begins only when all are there
	}
	if len(w.procs) == 0 {
		w.startProcess(false)
	}
	for i, s := range w.at {
		switch {
		case i < away && len(sets) == 1 && !w.moves:
			w.crash(s, crash, time.Hour)
		case !s.up:
			w.comeBack(s, crash)
		}
	}
}

// judgePeace: every process can grant locks, but where masters that had forgotten
// have been given markers of different sets, which only the operator can tell apart.
func (w *world) judgePeace() {
	sets := map[string]bool{}
	for _, s := range w.at {
		m, _ := ParseMarker(s.texts[0])
		sets[m.Set] = true
	}
	if w.divided = len(sets) > 1; w.divided || w.moves {
		return
	}
	for _, p := range w.procs {
		for db := range w.dbs {
			votes := 0
			for i := range w.masters {
				if s := p.r.sights[Place{i, db}]; s != nil && s.told.State == Certified {
					votes++
				}
			}
			if votes < quorum.Size(w.masters) {
				w.wrong = fmt.Sprintf("%s cannot grant locks in database %d after a long peace: %s", p.name, db, p.r.Status(p.now()).String())
				w.log("%s", w.wrong)
				return
			}
		}
	}
}

func (s Status) String() string {
	text := fmt.Sprintf("set %q epoch %d %s", s.Set, s.Epoch, s.Reason)
	for _, m := range s.Masters {
		text += fmt.Sprintf("; %s %v %s", m.Name, m.State, m.Reason)
	}
	return text
}
