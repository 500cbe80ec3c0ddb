package roster

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
)

// A model of the whole: several rosters, each with its own connections, over toy servers. Servers
// crash, come back empty or with old data, are flushed, are cut off, are replaced and are promoted,
// and their clocks jump. Processes start, stop and stand still. All times are the model's own. When
// a process counts enough votes for a lock, the lock is compared with every other that may live.
// Any quorum of the voters of the one must share a memory with any quorum of the voters of the
// other. In the end all faults stop, and then every process must be able to grant locks.

var (
	modelSteps = flag.Int("model.steps", 1_000_000, "how many steps the model takes")
	modelSeed  = flag.Uint64("model.seed", 0, "run the model's world of this seed only, and print what happens in it; 0: many")
	modelSkip  = flag.String("model.skip", "", "the numbers of faults to leave out, comma separated")
)

func TestModel(t *testing.T) {
	if *modelSeed != 0 {
		w := newWorld(*modelSeed, skipped(*modelSkip))
		w.trace = func(line string) { t.Log(line) }
		if w.live(); w.wrong != "" {
			t.Error(w.wrong)
		}
		return
	}
	divided := 0
	steps, worlds := runWorlds(t, worldOf, func(w *world) {
		if w.divided {
			divided++
		}
	})
	t.Logf("%d steps in %d worlds, of which %d were divided", steps, worlds, divided)
}

// runWorlds lets worlds of these seeds live until they have taken enough steps.
func runWorlds(t *testing.T, seedOf func(n uint64) uint64, lived func(*world)) (steps, worlds int) {
	for n := uint64(0); steps < *modelSteps; n++ {
		seed := seedOf(n)
		w := newWorld(seed, nil)
		w.live()
		steps, worlds = steps+w.steps, worlds+1
		if lived(w); w.wrong != "" {
			t.Fatalf("world %d: %s\nafter %d steps of %d worlds; look with\n go test ./redlock/roster -run 'TestModel$' -v -model.seed=%d -model.skip=%s", seed, w.wrong, steps, worlds, seed, shrink(seed))
		}
	}
	return steps, worlds
}

func skipped(list string) map[int]bool {
	skip := map[int]bool{}
	for _, word := range strings.Split(list, ",") {
		if n, err := strconv.Atoi(word); err == nil {
			skip[n] = true
		}
	}
	return skip
}

// shrink removes faults without which the world still goes wrong.
func shrink(seed uint64) string {
	skip := map[int]bool{}
	for again := true; again; {
		again = false
		for i := range newWorld(seed, nil).faults {
			if skip[i] {
				continue
			}
			skip[i] = true
			w := newWorld(seed, skip)
			if w.live(); w.wrong != "" {
				again = true
			} else {
				delete(skip, i)
			}
		}
	}
	var list []string
	for i := range skip {
		list = append(list, strconv.Itoa(i))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

var worldBegan = time.Unix(1_800_000_000, 0)

// worldLimits are the limits of most worlds.
var worldLimits = Limits{MasterTimeout: 100 * time.Millisecond, ClockDrift: 0.01, RestartDelay: 2 * time.Second, MaxQuarantine: 8 * time.Second}

// longQuarantine is MaxQuarantine in the other worlds. There a record of the longest TTL can turn
// twice before a lock has ended.
const longQuarantine = 40 * time.Second

// A quorum votes when it had no faults for MaxQuarantine, Hold and worldSlack.
// MaxQuarantine is the longest quarantine, or the wait for dead masters. Hold is the wait
// for others before a server that joins, or the quarantine after a wait. worldSlack is the
// time to notice, to report and to watch clocks.
const worldSlack = 10 * time.Second

type world struct {
	rng      *rand.Rand
	seed     uint64
	skip     map[int]bool
	now      time.Duration
	queue    []event // the last one comes first
	steps    int
	masters  int
	dbs      int // processes use so many at most, and servers have one more
	limits   Limits
	longs    int  // one lock in this many has a long TTL
	slow     bool // answers may take long
	moves    bool // servers are promoted
	at       []*toyServer
	full     []*toyServer // by place, also those that are not in the present list any more
	names    []string     // names of the masters in the present list
	all      []*toyServer
	procs    []*process
	started  int
	memories int
	faults   []fault
	grants   []*grant
	sets     map[string]bool // sets that have begun
	wrong    string
	peace    bool
	divided  bool // the masters belong to different sets
	trace    func(string)
	promoted *toyServer // the master before a promotion
	tokens   tokens
	operated bool          // the operator gives the processes other servers
	changed  time.Duration // when all processes have the present list, or are stopped
	changes  int           // of the number of masters
}

type event struct {
	at time.Duration
	do func()
}

func (w *world) after(d time.Duration, do func()) {
	// Of events at one time, the one that was pushed first comes first.
	at, _ := slices.BinarySearchFunc(w.queue, w.now+d, func(e event, at time.Duration) int { return cmp.Compare(at, e.at) })
	w.queue = slices.Insert(w.queue, at, event{w.now + d, do})
}

func (w *world) log(format string, values ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%8.3f ", w.now.Seconds()) + fmt.Sprintf(format, values...))
	}
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)))
}

// latency is how long a message travels.
func (w *world) latency() time.Duration {
	switch n := w.rng.IntN(100); {
	case n < 90:
		return w.between(time.Millisecond, 10*time.Millisecond)
	case n < 99 || !w.slow:
		return w.between(10*time.Millisecond, 45*time.Millisecond)
	}
	return w.between(45*time.Millisecond, time.Second)
}

func newWorld(seed uint64, skip map[int]bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), seed: seed, skip: skip, sets: map[string]bool{}}
	w.masters = []int{3, 3, 3, 3, 5, 5, 2, 4}[w.rng.IntN(8)] // a single master cannot learn of longer TTLs from others
	if w.resizes() && w.rng.IntN(2) == 0 {
		w.masters = 4 // a quorum of three and one of five need not meet
	}
	w.dbs = 1 + w.rng.IntN(2)
	w.limits, w.longs = worldLimits, []int{4, 4, 40, 400}[w.rng.IntN(4)]
	if w.rng.IntN(10) == 0 {
		w.limits.MaxQuarantine = longQuarantine
	}
	if w.hasStory() {
		w.masters, w.longs = 3, math.MaxInt
	}
	w.slow = w.rng.IntN(2) == 0
	w.moves = w.rng.IntN(4) == 0
	for i := range w.masters {
		s := w.newServer(i, string(rune('a'+i)))
		s.ahead = w.between(-time.Minute, time.Minute)
		w.at, w.names, w.full = append(w.at, s), append(w.names, s.name), append(w.full, s)
	}
	w.drawFaults()
	w.hurryTokens()
	return w
}

// live runs a world to its end.
func (w *world) live() {
	fresh := w.rng.IntN(2) == 0
	for range 1 + w.rng.IntN(3) {
		w.startProcess(fresh)
	}
	var end time.Duration
	for i, f := range w.faults {
		end = max(end, f.at+f.lasts)
		if !w.skip[i] {
			w.after(f.at, func() { w.strike(i, f) })
		}
	}
	end += time.Second
	w.after(end, w.makePeace)
	rest := w.limits.MaxQuarantine + w.limits.RestartDelay + worldSlack
	w.after(end+rest, func() {
		w.judgePeace()
		if w.resizes() || w.divided || w.moves || w.tokens.step > 1 || w.rng.IntN(4) > 0 {
			w.queue = nil
			return
		}
		w.haveTrouble()
		w.after(rest, func() {
			w.judgePeace()
			w.queue = nil
		})
	})
	for w.wrong == "" && !w.divided && len(w.queue) > 0 {
		last := len(w.queue) - 1
		e := w.queue[last]
		w.queue, w.now = w.queue[:last], e.at
		w.steps++
		e.do()
	}
}

// A process is one roster with its connections.
type process struct {
	w       *world
	name    string
	r       *Roster
	dead    bool
	paused  bool
	waiting []func() // actions that wait until it goes on
	lag     time.Duration
	streams []*toyStream
	clocks  []toyClock
	route   []*toyServer
	names   []string
	cut     []bool
	masters int // as published last
	dbs     int // it uses so many databases
	version uint64
	judged  uint64
	witness bool
	waking  bool
	// nextToken is above all tokens that the process has read. 0: it has asked for none.
	nextToken int64
	// granted is when it last counted enough votes for a lock, by database.
	granted map[int]time.Duration
	turn    int // in peace it asks for the databases in turn
	// told are the longest TTLs that servers told it, and when each was told last.
	told map[time.Duration]time.Duration
}

// knows tells whether a server told the process of such a TTL so lately that a lock may live that
// had it then.
func (p *process) knows(ttl time.Duration) bool {
	for longest, at := range p.told {
		if longest >= ttl && p.w.now <= at+longest {
			return true
		}
	}
	return false
}

func (w *world) startProcess(fresh bool) *process {
	w.started++
	p := &process{w: w, name: "p" + strconv.Itoa(w.started), clocks: make([]toyClock, w.masters), route: slices.Clone(w.at), names: slices.Clone(w.names), cut: make([]bool, w.masters), dbs: w.dbs, told: map[time.Duration]time.Duration{}, granted: map[int]time.Duration{}}
	if w.seed%4 == 1 && !w.hasStory() && (w.seed/4+uint64(w.started))%2 == 0 {
		p.dbs = 1 // its locks are in database 0, and others may have some elsewhere
	}
	var servers []Server
	for i := range w.masters {
		servers = append(servers, Server{Name: w.names[i], Moves: w.moves})
	}
	p.r = New(servers, fresh, w.rng.Uint64())
	for db := range p.dbs {
		for i := range w.masters {
			p.opens(Place{i, db})
		}
	}
	w.procs = append(w.procs, p)
	w.log("%s starts, fresh: %v", p.name, fresh)
	w.after(w.between(0, BeatLength), func() { p.do(p.beat) })
	w.after(w.between(0, time.Second), func() { p.do(p.ask) })
	if w.hasTokens() {
		w.after(w.between(0, time.Second), func() { p.do(p.askToken) })
	}
	return p
}

// opens has a process dial a place.
func (p *process) opens(at Place) {
	s := &toyStream{p: p, place: at}
	p.streams = append(p.streams, s)
	p.w.after(p.w.latency(), func() { p.do(s.dial) })
}

// streamsOf are the connections to a master.
func (p *process) streamsOf(place int) []*toyStream {
	return slices.DeleteFunc(slices.Clone(p.streams), func(s *toyStream) bool { return s.place.Master != place })
}

func (p *process) stop() {
	p.dead = true
	p.w.procs = slices.DeleteFunc(p.w.procs, func(q *process) bool { return q == p })
	p.w.forgets()
}

// do runs an action of the process, at once or when the process goes on. It drops the action of a
// dead process.
func (p *process) do(it func()) {
	switch {
	case p.dead:
	case p.paused:
		p.waiting = append(p.waiting, it)
	default:
		it()
	}
}

func (p *process) now() time.Time { return worldBegan.Add(p.w.now - p.lag) }

func (p *process) resume() {
	p.paused = false
	waiting := p.waiting
	p.waiting = nil
	for _, it := range waiting {
		p.do(it)
	}
}

// drain takes the roster's news.
func (p *process) drain() {
	news := p.r.Ready()
	p.version, p.witness = news.Version, news.Witnessed
	p.masters = news.Masters
	for _, n := range news.Notices {
		if p.w.trace == nil {
			break
		}
		if n.Standing != nil {
			p.w.log("%s: %s is %v: %s", p.name, n.Standing.Name, n.Standing.State, n.Standing.Reason)
		} else {
			p.w.log("%s: %s %v", p.name, n.Text, n.Fields)
		}
	}
	if news.Changed && !p.waking {
		p.waking = true
		p.w.after(time.Millisecond, func() { p.do(func() { p.waking = false; p.tick() }) })
	}
}

// beat runs every BeatLength.
func (p *process) beat() {
	p.tick()
	p.w.after(BeatLength, func() { p.do(p.beat) })
}

// tick does what the certifier does.
func (p *process) tick() {
	now := p.now()
	for _, s := range p.streams {
		p.r.Step(Asked{s.place, s.asked, s.token}, s.asked)
	}
	writes := p.r.Tick(now, p.w.limits)
	p.drain()
	for _, m := range writes {
		s := p.stream(m.Place)
		latest := time.Duration(now.UnixNano()) + p.clocks[m.Master].least + p.w.limits.LateMark()
		p.w.log("%s writes to %v (%d): %s: %s", p.name, p.route[m.Master], m.Kind, m.Reason, m.Marker)
		s.send(batch{write: &m, latest: latest})
	}
	all := p.version != p.judged || p.r.unsettled
	p.judged = p.version
	for _, s := range p.streams {
		if s.up && (all || now.Sub(s.beaten) >= BeatPause) {
			s.beaten = now
			s.send(batch{})
		}
	}
}

func (p *process) stream(at Place) *toyStream {
	for _, s := range p.streams {
		if s.place == at {
			return s
		}
	}
	return &toyStream{p: p, place: at} // the process has a shorter list
}

// A toyClock finds jumps of a server's clock.
type toyClock struct {
	run         string
	calibrated  bool
	least, most time.Duration
	since       time.Time
}

func (c *toyClock) isOf(run string) {
	c.calibrated = c.calibrated && c.run == run
	c.run = run
}

func (c *toyClock) observe(sent, received time.Time, server time.Duration) Jump {
	least, most := server-time.Duration(received.UnixNano()), server-time.Duration(sent.UnixNano())
	if !c.calibrated {
		*c = toyClock{c.run, true, least, most, received}
		return Jump{}
	}
	by := Jump{least - c.most, most - c.least}
	if by.Least <= ClockTolerance && by.Most >= -ClockTolerance {
		c.least, c.most = max(c.least, least), min(c.most, most)
		return Jump{}
	}
	c.least, c.most = least, most
	return by
}

// A toyStream is a process's connection to a place.
type toyStream struct {
	p      *process
	place  Place
	up     bool
	left   bool // its place was removed from the list
	gen    int
	server *toyServer
	run    string
	// execs and hears are when the last batch reaches the server, and when its answer reaches the
	// process.
	execs, hears time.Duration
	beaten       time.Time
	asked        time.Time
	token        int64
	longest      time.Duration // the longest TTL that text records

	valid    bool
	version  uint64
	text     string
	repl     Replication
	standing Standing
	marker   marker.Marker
	noted    Standing
}

// dial opens a connection, or tries again later.
func (s *toyStream) dial() {
	p, w := s.p, s.p.w
	if s.left {
		return
	}
	server := p.route[s.place.Master]
	run := server.run
	if !server.up || p.cut[s.place.Master] {
		p.r.Step(Disconnected{s.place, "it cannot be dialled"}, p.now())
		p.drain()
		w.after(w.between(50*time.Millisecond, 500*time.Millisecond), func() { p.do(s.dial) })
		return
	}
	repl := server.repl
	w.after(w.latency(), func() {
		p.do(func() {
			if s.left || server != p.route[s.place.Master] || server.run != run || !server.up || p.cut[s.place.Master] {
				s.dial()
				return
			}
			s.gen++
			*s = toyStream{p: p, place: s.place, up: true, gen: s.gen, server: server, run: run, repl: repl}
			p.r.Step(Connected{Place: s.place, Run: run, Replication: repl}, p.now())
			p.clocks[s.place.Master].isOf(run)
			p.drain()
			s.send(batch{})
		})
	})
}

// breaks ends a connection once the process notices.
func (s *toyStream) breaks(in time.Duration) {
	p, gen := s.p, s.gen
	p.w.after(in, func() {
		p.do(func() {
			if !s.up || s.gen != gen {
				return
			}
			s.up = false
			p.r.Step(Disconnected{s.place, "its connection has ended"}, p.now())
			p.drain()
			p.w.after(p.w.latency(), func() { p.do(s.dial) })
		})
	})
}

// A batch is sent at once, with a check of the marker behind it.
type batch struct {
	write  *Write
	latest time.Duration
	ballot *ballot
	raise  time.Duration
	token  *tokenBallot
	late   time.Duration // how much longer than others it travels
}

// A said is the result of a check.
type said struct {
	text   string
	clock  time.Duration
	repl   Replication
	memory int
	wrote  bool
	token  told
}

func (s *toyStream) send(b batch) {
	p, w := s.p, s.p.w
	if !s.up {
		return
	}
	gen, server, run, sent := s.gen, s.server, s.run, p.now()
	s.execs = max(s.execs, w.now+w.latency()+b.late)
	if b.write != nil && !w.peace && w.rng.IntN(50) == 0 {
		s.breaks(w.latency()) // and the write is lost
		return
	}
	w.after(s.execs-w.now, func() {
		if server.run != run || !server.up || s.gen != gen || p.cut[s.place.Master] {
			return
		}
		db := s.place.DB
		if b.raise > 0 {
			server.raise(db, b.raise)
		}
		memory := server.memory[db]
		var it said
		if b.token != nil {
			it.token = server.raiseToken(w, db, b.token.number, b.token.first)
		}
		if b.write != nil {
			it.wrote = server.write(w, *b.write, b.latest)
		}
		it.text, it.clock, it.repl, it.memory = server.texts[db], server.clock(w), server.repl, memory
		s.hears = max(s.hears, w.now+w.latency())
		w.after(s.hears-w.now, func() {
			p.do(func() {
				if s.up && s.gen == gen && !p.cut[s.place.Master] {
					s.hear(b, it, sent)
				}
			})
		})
	})
}

// hear does what a stream's reader does with a batch's answers.
func (s *toyStream) hear(b batch, it said, sent time.Time) {
	p, now := s.p, s.p.now()
	clock := &p.clocks[s.place.Master]
	jump := clock.observe(sent, now, it.clock)
	if jump.Forward() {
		p.w.log("%s sees the clock of %v jump by %v", p.name, s.server, jump.Least)
	}
	s.asked = sent
	rest, token := marker.CutToken(it.text)
	s.token = token
	if !s.valid || s.text != rest {
		m, _ := marker.Parse(rest)
		s.longest = m.Granted()
	}
	p.told[s.longest] = p.w.now
	if !s.valid || s.repl != it.repl {
		s.repl = it.repl
		p.r.Step(Replicates{s.place, it.repl}, now)
	}
	p.drain()
	if !s.valid || s.version != p.version || s.text != rest || jump.Forward() {
		version := p.version
		p.r.Step(Checked{Place: s.place, Text: it.text, Asked: sent, Jump: jump}, now)
		s.standing, s.marker = p.r.Judge(s.place)
		s.valid, s.version, s.text = true, version, rest
	}
	st := s.standing.At(s.marker, Reading{Clock: it.clock, Received: now, Jumped: jump.Forward(), Watched: now.Sub(clock.since), Witnessed: p.witness}, p.w.limits)
	if st.State != s.noted.State || st.Reason != s.noted.Reason || st.Until.Sub(s.noted.Until).Abs() > time.Second {
		s.noted = st
		p.r.Step(Noted{s.place, st}, now)
	}
	if it.wrote {
		p.r.Step(Wrote{*b.write}, now)
	}
	p.drain()
	if b.ballot != nil && st.State == Voting && st.Covers >= b.ballot.ttl {
		b.ballot.vote(s.place.Master, it.memory)
	}
	if b.token != nil && st.State == Voting && it.token.fits {
		b.token.hear(it.token)
	}
}

// A ballot asks every master for a lock.
type ballot struct {
	p     *process
	db    int
	began time.Duration
	local time.Time
	lag   time.Duration // lag of the process when the ballot began
	ttl   time.Duration
	grant *grant
	// masters is how many there were when it began.
	masters int
	votes   []int
}

// A grant is a lock that may have been won.
type grant struct {
	by     string
	db     int
	began  time.Duration
	ends   time.Duration
	needed int   // the quorum by which it was won
	long   bool  // the lock lives longer than a new set waits
	votes  []int // the memories that voted
	// forgotten says that nothing told of the lock any more at some moment.
	forgotten bool
}

// ask begins a ballot, and another one later.
func (p *process) ask() {
	w := p.w
	p.askFor(w.rng.IntN(w.longs) == 0, -1)
	w.after(w.between(100*time.Millisecond, 600*time.Millisecond), func() { p.do(p.ask) })
}

// askFor begins a ballot. It reaches the first master earlier than the others.
func (p *process) askFor(long bool, first int) {
	w := p.w
	db := w.rng.IntN(p.dbs)
	if w.peace {
		p.turn++ // judgePeace wants a lock in each database soon, and draws may leave one out for long
		db = p.turn % p.dbs
	}
	b := &ballot{p: p, db: db, began: w.now, local: p.now(), lag: p.lag, ttl: w.limits.RestartDelay, masters: p.r.masters}
	if long {
		b.ttl = w.between(w.limits.RestartDelay, w.longestTTL()).Truncate(time.Second)
	}
	for i := range b.masters {
		s := p.stream(Place{i, b.db})
		q := batch{ballot: b}
		if first >= 0 && i != first {
			q.late = w.between(20*time.Millisecond, w.limits.MasterTimeout)
		}
		if b.ttl > s.marker.Longest {
			q.raise = b.ttl
		}
		s.send(q)
	}
}

func (b *ballot) vote(master, memory int) {
	w := b.p.w
	if b.p.now().Sub(b.local) > w.limits.MasterTimeout || b.lag != b.p.lag {
		return // if nobody can know of a suspension, a client cannot either
	}
	if master >= b.masters {
		return
	}
	b.votes = append(b.votes, memory)
	needed := quorum.Size(b.masters)
	if len(b.votes) < needed {
		return
	}
	b.p.granted[b.db] = w.now
	if b.grant == nil {
		b.grant = &grant{by: b.p.name, db: b.db, began: b.began, ends: b.began + b.ttl, long: b.ttl > w.limits.RestartDelay, needed: needed}
		w.grants = slices.DeleteFunc(w.grants, func(g *grant) bool { return g.ends <= w.now })
		w.grants = append(w.grants, b.grant)
	}
	b.grant.votes = b.votes
	for _, g := range w.grants {
		if g != b.grant && g.db == b.db && disjoint(g.votes, b.votes, g.needed, needed) && !g.forgotten {
			w.wrong = fmt.Sprintf("two holders: %s by the memories %v until %v, and %s by %v at %v", g.by, g.votes, g.ends, b.p.name, b.votes, w.now)
			w.log("%s", w.wrong)
		}
	}
}

// begins records a new set. If all masters have forgotten, and no server has told a living process
// of longer TTLs, a new set waits for RestartDelay only. Locks that live longer are not promised to
// stay exclusive then (doc.go).
//
// A process may not know that the number of masters has changed. If all masters on its list have
// forgotten, it begins a set beside the one that others remember, which is an exception (doc.go).
// Then the world ends.
func (w *world) begins(set string, masters int) {
	if w.sets[set] {
		return
	}
	w.sets[set] = true
	w.grants = slices.DeleteFunc(w.grants, func(g *grant) bool {
		return g.long && !slices.ContainsFunc(w.procs, func(p *process) bool { return p.knows(g.ends - g.began) })
	})
	for _, s := range w.full[min(masters, len(w.full)):] {
		if joined := s.own().Joined; s.remembers() && joined.IsResized() && s.place < joined.Counting() {
			w.log("THE END: a set of %d masters begins beside one of %d", masters, joined.Counting())
			w.divided = true
			return
		}
	}
}

// forgets finds the long locks of which nothing tells any more: all masters have forgotten them, one
// before another could learn of them again, no marker has such a TTL, and no living process was told of
// one (doc.go). Later locks may have the same TTL, so it is called at the moment at which a master
// forgets or a process ends.
func (w *world) forgets() {
	for _, g := range w.grants {
		first, last, ttl := w.now, time.Duration(0), g.ends-g.began
		for _, s := range w.at {
			first, last = min(first, s.forgot[g.db]), max(last, s.forgot[g.db])
		}
		g.forgotten = g.forgotten || g.long && first > g.began && last-first < w.limits.RestartDelay &&
			!slices.ContainsFunc(w.at, func(s *toyServer) bool { return s.own().Granted() >= ttl }) &&
			!slices.ContainsFunc(w.procs, func(p *process) bool { return p.knows(ttl) })
	}
}

// disjoint tells whether a quorum of the one and a quorum of the other have nothing in common.
func disjoint(one, other []int, needed, otherNeeded int) bool {
	common := 0
	for _, m := range one {
		if slices.Contains(other, m) {
			common++
		}
	}
	return max(0, needed-(len(one)-common))+max(0, otherNeeded-(len(other)-common)) <= common
}
