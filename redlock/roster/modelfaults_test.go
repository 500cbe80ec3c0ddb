package roster

import (
	"fmt"
	"slices"
	"time"

	named "redlock-proxy/integration/fault"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
)

// A fault happens to a world. All faults are drawn before the world begins, so that one can be left
// out.
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
	pauseOne
	suspend
	powerLoss
	save
	promote
	badTime
	replicate
	rush
	split
	reload
	faultKinds
	otherServer
	lostReload
	resize
	lateMend
	swapBack
)

func (k faultKind) String() string {
	return [...]string{named.Restart, named.Forget, named.Restart + " with old data", named.Flush, named.Flush + " of one database", "swap", named.Jump + " forward", named.Jump + " back",
		named.Cut, "start" + named.Proxy, "stop" + named.Proxy, named.Restart + named.Proxy, named.Pause + named.Proxy, "suspend" + named.Proxy, "power loss", "snapshot",
		"promotion", "a bad source of time", "a replica for a moment", "a long lock, and it forgets", "a split", "a reload", "", "another server under the name", "a reload, and one that heard of it forgets", "another number of masters", "a master is mended by what was read long ago", "SWAPDB, and back later"}[k]
}

func (w *world) drawFaults() {
	at := 4 * time.Second
	kinds := w.rng.Perm(int(faultKinds))[:1+w.rng.IntN(6)]
	switch {
	case w.hasStory():
		w.moves = false
		w.addFault(at, w.story())
		return
	case w.losesPower():
		w.moves = false
		kinds = []int{int(powerLoss), int(powerLoss), int(startAnother), int(restartOne), int(stopOne), kinds[0], w.rng.IntN(int(cutOff) + 1)}
	case w.resizes():
		w.moves, w.operated = false, true
		kinds = append(kinds, int(resize), int(resize), int(resize), int(resize), int(resize))
	case w.moves:
		kinds = append(kinds, int(promote), int(promote))
	case w.rng.IntN(5) == 0:
		// Masters that forget meanwhile would look like other servers.
		kinds = []int{int(cutOff), int(pauseOne), int(startAnother), int(restartOne), int(stopOne), int(save), int(split), int(otherServer)}
	case w.rng.IntN(8) == 0:
		w.operated = true
		w.addFault(at, lostReload)
		return
	case w.rng.IntN(4) == 0:
		kinds = append(kinds[:1], int(rush), int(rush), int(startAnother))
	}
	if w.hasTokens() && !slices.Contains(kinds, int(otherServer)) {
		kinds = append(kinds, int(crashOld), int(crashEmpty), int(flushAll), int(flushDB), int(restartOne), int(save), int(powerLoss))
	}
	w.operated = w.operated || !w.moves && (slices.Contains(kinds, int(reload)) || slices.Contains(kinds, int(otherServer)))
	if w.limits.MaxQuarantine == longQuarantine {
		at = 12 * time.Second
	}
	for range 3 + w.rng.IntN(10) {
		if w.resizes() {
			at += w.between(0, 3*w.limits.MaxQuarantine) * time.Duration(w.rng.IntN(2))
		}
		at += w.between(0, w.limits.MaxQuarantine/2) * time.Duration(w.rng.IntN(2))
		at += w.between(0, 300*time.Millisecond)
		w.addFault(at, faultKind(kinds[w.rng.IntN(len(kinds))]))
	}
}

func (w *world) addFault(at time.Duration, kind faultKind) {
	f := fault{at: at, kind: kind, who: w.rng.IntN(1 << 16), what: w.rng.IntN(1 << 16)}
	f.lasts = w.between(10*time.Millisecond, 2*time.Second)
	if w.rng.IntN(3) == 0 {
		f.lasts = w.between(2*time.Second, 12*time.Second)
	}
	if kind == lostReload {
		f.lasts = 3 * w.limits.MaxQuarantine
	}
	if w.hasStory() {
		f.lasts = w.storyLasts()
	}
	w.faults = append(w.faults, f)
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
			server.swap(0, 1)
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
		if p != nil {
			w.cut(p, place, f.lasts)
		}
	case split:
		for i, p := range w.procs {
			w.cut(p, (f.who>>i)%w.masters, f.lasts)
		}
	case rush:
		if p != nil && !p.paused {
			w.rush(p, server, f)
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
	case pauseOne, suspend:
		if p != nil {
			p.pause(f.lasts, f.kind == suspend)
		}
	case save:
		server.saved = slices.Clone(server.texts)
	case promote:
		if w.moves {
			w.promote(server, f)
		}
	case otherServer:
		w.otherServer(server, f)
	case reload:
		if p != nil && !w.moves {
			w.reload(p, place, f)
		}
	case lostReload:
		if p != nil && !w.moves {
			w.lostReload(p, place, f)
		}
	case resize:
		if p != nil {
			w.resize(p, f)
		}
	case lateMend:
		w.lateMend(f)
	case swapBack:
		w.swapBack(server, f)
	case badTime:
		if !w.slow && p != nil {
			w.jumpTogether(p, f)
		}
	case replicate:
		server.repl = Replication{ID: fmt.Sprintf("id%d", i), Was: true}
		server.forgetAll(w)
	}
}

// rush makes a server forget while a process asks for a long lock. Perhaps the server is the first
// that hears of the lock, another process looks just then, the asking process does not reach all
// others, one of those goes away, and so does the process.
func (w *world) rush(p *process, s *toyServer, f fault) {
	first, third := -1, (s.place+1)%w.masters
	if f.what&1 != 0 {
		first = s.place
	}
	if f.what&2 != 0 {
		w.cut(p, (s.place+2)%w.masters, f.lasts)
	}
	p.askFor(true, first)
	w.after(time.Duration(f.who>>4%32+2)*time.Millisecond, func() {
		clear(s.texts)
		s.forgetAll(w)
		for _, q := range w.procs {
			if q != p && f.what&4 != 0 {
				q.do(func() { q.stream(Place{s.place, 0}).send(batch{}) })
			}
		}
	})
	if f.what&8 == 0 {
		return
	}
	w.after(w.limits.MasterTimeout, func() {
		if third >= len(w.at) {
			return // there are fewer masters now
		}
		w.crash(w.at[third], crash, f.lasts+2*w.limits.RestartDelay)
		if !w.isWitness(p) {
			p.stop()
		}
	})
}

// cut keeps a process from reaching a place for a while.
func (w *world) cut(p *process, place int, lasts time.Duration) {
	if w.peace || w.isWitness(p) || place >= len(p.cut) || p.cut[place] {
		return
	}
	p.cut[place] = true
	for _, s := range p.streamsOf(place) {
		s.breaks(w.between(10*time.Millisecond, 2*time.Second))
	}
	w.after(lasts, func() {
		if place < len(p.cut) {
			p.cut[place] = false
		}
	})
}

func name(p *process) string {
	if p == nil {
		return "nobody"
	}
	return p.name
}

// crash ends a server's process, and starts another one later.
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
	return place < len(p.clocks) && s.up && s.valid && s.server == w.at[place] && s.server.up && p.clocks[place].calibrated && !p.paused && !p.cut[place]
}

// isWitness tells whether the process has seen a jump, or is about to, that perhaps nobody else
// knows of. A jump that no living process sees goes unnoticed. No promise covers that.
func (w *world) isWitness(p *process) bool {
	return slices.ContainsFunc(w.all, func(s *toyServer) bool { return s.jumped == p })
}

// promote makes a replica the master of a place, always of the same place. If more places than N-Q
// led to other servers for some processes, nobody could notice it.
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
			continue // it does not notice for a long time
		}
		w.after(w.between(0, 2*time.Second), func() {
			p.route[s.place] = n
			if f.what%2 == 0 {
				for _, c := range p.streamsOf(s.place) {
					c.breaks(0)
				}
			}
		})
	}
	if f.what%3 == 0 {
		w.crash(s, crash, f.lasts)
	}
}

// otherServer starts a process with another server in a place. Running processes know the server
// before it, which lives on.
func (w *world) otherServer(s *toyServer, f fault) {
	if len(w.all) > w.masters {
		return // two at once would look like restarted masters
	}
	n := w.newServer(s.place, w.nextName(s.place))
	w.at[s.place], w.full[s.place] = n, n
	if f.what%2 == 0 {
		w.names[s.place] = n.name
	}
	p := w.startProcess(false)
	w.tells(func(q *process) { w.follows(q, s.place, n) })
	if f.what%3 == 0 {
		return
	}
	lasts := w.between(w.limits.MaxQuarantine/2, w.limits.MaxQuarantine)
	for _, q := range w.procs {
		if q == p {
			w.cut(q, (s.place+1)%w.masters, lasts)
		} else {
			w.cut(q, (s.place+2)%w.masters, lasts)
		}
	}
}

// tells has the operator give the present list to all processes, by reloads, or stop them, in time. A process is
// stopped only when others know of a jump that it saw.
func (w *world) tells(follow func(*process)) {
	w.changed = w.now + w.tellsIn()
	for _, p := range w.procs {
		w.after(w.between(0, w.tellsIn()), func() { p.do(func() { follow(p) }) })
	}
	w.after(w.tellsIn(), w.stopsOld)
}

// follows reloads a process with another server in a place, if the present list still has it.
func (w *world) follows(p *process, place int, n *toyServer) {
	if place < len(w.at) && n == w.at[place] {
		p.replace(place, n)
	}
}

// tellsIn is how long the operator may take: MaxQuarantine less the longest TTL, the time that a process takes to get a
// reply from the masters, and what a ballot takes.
func (w *world) tellsIn() time.Duration {
	return w.limits.MaxQuarantine - w.longestTTL() - w.limits.MasterTimeout - time.Duration(2*w.limits.ClockDrift*float64(w.limits.MaxQuarantine))
}

// longestTTL is the longest TTL that clients ask for. Where the operator changes the list, it leaves time for that.
func (w *world) longestTTL() time.Duration {
	if w.operated {
		return w.limits.MaxQuarantine / 2
	}
	return w.limits.MaxQuarantine
}

// stopsOld stops the processes that do not have the present list, and starts others in their place.
func (w *world) stopsOld() {
	for _, p := range slices.Clone(w.procs) {
		switch {
		case slices.Equal(p.route, w.at):
		case w.isWitness(p):
			w.after(100*time.Millisecond, w.stopsOld)
		default:
			w.log("%s is stopped, because it has an old list", p.name)
			p.stop()
			w.startProcess(false)
		}
	}
}

// newServer is another server for a place.
func (w *world) newServer(place int, name string) *toyServer {
	n := newToy(place, name, w.dbs+1)
	n.repl.ID = "first-" + n.name
	n.forgetAll(w)
	w.all = append(w.all, n)
	return n
}

// nextName is the name of another server for a place.
func (w *world) nextName(place int) string { return fmt.Sprintf("%c%d", 'a'+place, len(w.all)) }

// reload makes a process that has the present list replace the server at a place, by a new one or by an earlier one of
// the place. The others follow.
func (w *world) reload(p *process, place int, f fault) {
	if w.now < w.changed || !slices.Equal(p.route, w.at) {
		return
	}
	n := w.newServer(place, w.nextName(place))
	for _, s := range w.all {
		if f.what%4 == 0 && s.place == place && s != w.at[place] && s.up {
			n = s
		}
	}
	if f.what%8 == 0 {
		n.texts[0] = "" // the operator has deleted the key there, and in no other database
	}
	if !p.replace(place, n) {
		return
	}
	w.at[place], w.names[place], w.full[place] = n, n.name, n
	w.tells(func(q *process) { w.follows(q, place, n) })
}

// lostReload replaces the server at a place. A process that reaches only half of the others does not
// hear of it, or stands still. Later some of its half forget, and no other process reaches these.
func (w *world) lostReload(p *process, place int, f fault) {
	others := w.rng.Perm(w.masters - 1)
	for i := range others {
		others[i] = (place + 1 + others[i]) % w.masters
	}
	far, near := others[:(w.masters-1)/2], others[(w.masters-1)/2:]
	forget := near[:1+f.what>>8%len(near)]
	q, replaces := w.startProcess(false), w.between(w.limits.Watch(), 3*time.Second)
	forgets := replaces + w.between(0, w.limits.MaxQuarantine)
	for _, i := range far {
		w.cut(p, i, f.lasts)
	}
	w.cutOthers(p, near[len(forget):], f.lasts)
	w.after(replaces, func() { w.reload(q, place, f) })
	if f.what&3 != 0 {
		p.pause(forgets+w.between(0, time.Second), f.what&3 == 1)
	}
	w.after(forgets, func() {
		w.cutOthers(p, forget, f.lasts-forgets)
		for _, i := range forget {
			switch s := w.at[i]; f.what >> 2 & 3 {
			case 0:
				w.crash(s, crashOld, w.limits.RestartDelay/2)
			case 1:
				w.crash(s, crashEmpty, w.limits.RestartDelay/2)
			default:
				clear(s.texts)
				s.forgetAll(w)
			}
		}
	})
}

// cutOthers keeps all processes but one from reaching some places for a while.
func (w *world) cutOthers(p *process, places []int, lasts time.Duration) {
	for _, q := range w.procs {
		for _, i := range places {
			if q != p {
				w.cut(q, i, lasts)
			}
		}
	}
}

// pause stops a process for a while. It may be suspended, so that its clocks stand still, too.
func (p *process) pause(lasts time.Duration, suspended bool) {
	if p.paused || p.w.isWitness(p) {
		return
	}
	p.w.after(lasts, p.halts(suspended))
}

// halts has a process stand still until goesOn is called.
func (p *process) halts(suspended bool) (goesOn func()) {
	began := p.w.now
	p.paused = true
	return func() {
		if suspended {
			p.lag += p.w.now - began
			p.w.tokens = tokens{behind: true, step: 1}
		}
		p.resume()
	}
}

// replace does what a reload does, and tells whether it has begun.
func (p *process) replace(place int, n *toyServer) bool {
	if p.paused || place >= len(p.names) || p.route[place] == n {
		return false
	}
	j, ok := p.proposes(Change{Master: place, Name: n.name, Run: n.run, Marker: n.texts[0]})
	if ok {
		p.agree(place, n, j, 100)
	}
	return ok
}

// proposes tells whether the roster accepts a change.
func (p *process) proposes(c Change) (Joined, bool) {
	j, err := p.r.Propose(c, p.now())
	p.w.log("%s makes %q number %d in epoch %d: %v", p.name, c.Name, c.Master+1, j.Epoch, err)
	p.drain()
	return j, err == nil
}

// agree waits until enough others have recorded a replacement.
func (p *process) agree(place int, n *toyServer, j Joined, patience int) {
	if place >= len(p.names) {
		return // another reload has shortened the list meanwhile
	}
	heard, needed, overtaken := p.r.Heard(place, j)
	switch {
	case overtaken || patience == 0:
		p.w.log("%s gives up to replace %s by %v", p.name, p.names[place], n)
		return
	case heard < needed:
		p.w.after(50*time.Millisecond, func() { p.do(func() { p.agree(place, n, j, patience-1) }) })
		return
	}
	for _, s := range p.streamsOf(place) {
		if s.gen++; s.up {
			s.up = false
			p.w.after(p.w.latency(), func() { p.do(s.dial) })
		}
	}
	p.r.Step(Listed{place, Server{Name: n.name}}, p.now())
	p.route[place], p.names[place] = n, n.name
	p.clocks[place].calibrated = false
	p.drain()
}

// jumpTogether makes the clocks of all masters but one jump, and a process sees it.
func (w *world) jumpTogether(p *process, f fault) {
	spared := f.who % w.masters
	for i, s := range w.at {
		if i != spared && (s.jumped != nil || w.now-s.back <= 3*time.Second || !w.sees(p, i)) || i == spared && !w.sees(p, i) {
			return
		}
	}
	for _, q := range w.procs {
		if spared >= q.r.masters && !(q.r.joined.Has(spared) && w.sees(q, spared)) {
			return // to this process all masters would have jumped
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

// makePeace ends all faults. A minority may stay away, if a quorum of the others remembers.
func (w *world) makePeace() {
	w.log("PEACE")
	w.peace = true
	away := w.rng.IntN(w.masters - quorum.Size(w.masters) + 1)
	for _, p := range slices.Clone(w.procs) {
		clear(p.cut)
		if p.paused {
			p.resume()
		}
		if !w.moves && !slices.Equal(p.route, w.at) {
			w.restartWithPresentList(p)
			continue
		}
		for i := range min(len(w.at), len(p.names)) {
			p.route[i] = w.at[i]
		}
		for _, s := range p.streams {
			if s.up && s.place.Master < len(p.names) && s.place.Master < len(w.at) && s.server != w.at[s.place.Master] {
				s.breaks(0)
			}
		}
	}
	sets := map[string]int{}
	for _, s := range w.at {
		sets[s.own().Set]++
	}
	if w.remembering(away) < quorum.Size(w.masters) {
		away = 0 // a new set begins only when all masters are reachable, and few can tell who the masters are
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

// remembering counts the masters that remember, apart from the first ones.
func (w *world) remembering(after int) (n int) {
	for _, s := range w.at[after:] {
		if s.remembers() {
			n++
		}
	}
	return n
}

// recordsDiffer tells whether the marker of a server, written in its present run, says that it is the
// member, and that of another one, of the same set, that a later server is.
func (w *world) recordsDiffer() bool {
	for i, s := range w.at {
		own := s.own()
		for _, other := range w.at {
			m := other.own()
			if own.Run == s.run && m.Run == other.run && m.Set == own.Set && m.Joined.Fits(own.Joined) && m.Joined.Together(own.Joined).Who(i) != own.Joined.Who(i) {
				return true
			}
		}
	}
	return false
}

// members counts the servers whose markers say that they remember and are the members of their set.
func (w *world) members() (n int) {
	for i, s := range w.at {
		own, joined := s.own(), s.own().Joined
		for _, other := range w.at {
			if m := other.own(); m.Set == own.Set && m.Joined.Fits(joined) {
				joined = joined.Together(m.Joined)
			}
		}
		if own.Run == s.run && own.Joined.Who(i) == joined.Who(i) {
			n++
		}
	}
	return n
}

// haveTrouble takes a minority away for ever and restarts one of the others. The processes have
// seen that one lately. It does not come back with old data: those may be from before it joined, and
// then it has to join again, which takes more of the others.
//
// A server that was replaced by another one under the same name stays away until the operator helps.
// So does one that got the marker of another set. Then there is no such minority.
func (w *world) haveTrouble() {
	if w.recordsDiffer() || slices.ContainsFunc(w.at, func(s *toyServer) bool { return s.own().Set != w.at[0].own().Set }) {
		return
	}
	w.log("TROUBLE")
	away := w.masters - quorum.Size(w.masters)
	for i, s := range w.at {
		if i < away {
			w.crash(s, crash, time.Hour)
		} else if i == away {
			w.crash(s, faultKind(w.rng.IntN(2)), w.between(time.Millisecond, w.limits.RestartDelay-time.Second))
		}
	}
}

// restartWithPresentList restarts a process with the present list, once no jump is lost by it.
func (w *world) restartWithPresentList(p *process) {
	w.after(2*time.Second, func() {
		p.stop()
		w.startProcess(false)
	})
}

// grantsWithin is how long a process may take for a lock in each database. It asks for one every few hundred ms.
const grantsWithin = 6 * time.Second

// judgePeace checks that every process can grant locks. It excepts masters that had forgotten and
// got markers of different sets, if no quorum of one set is up, because only the operator can tell
// those apart. It also excepts masters that all restarted, if a marker of the present names another server
// in a place, and promoted servers of which too few remember (doc.go).
func (w *world) judgePeace() {
	sets, most := map[string]int{}, 0 // the servers of each set that are up, and the most of them
	for _, s := range w.at {
		m, ok := marker.Parse(s.texts[0])
		switch {
		case ok && s.up:
			sets[m.Set]++
		case ok:
			sets[m.Set] += 0
		}
		most = max(most, sets[m.Set])
	}
	restarted := !slices.ContainsFunc(w.at, func(s *toyServer) bool { return s.runs == 1 })
	w.divided = len(sets) > 1 && most < quorum.Size(len(w.at)) || restarted && w.recordsDiffer()
	if w.divided || w.moves && w.members() < quorum.Size(len(w.at)) {
		return
	}
	for _, p := range w.procs {
		for db := range p.dbs {
			if w.now-p.granted[db] > grantsWithin {
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
