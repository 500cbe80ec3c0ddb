package roster

import (
	"slices"
	"time"
)

// A Place is one database of one master.
type Place struct {
	Master int // counted from 0
	DB     int
}

// A sight is what this process saw last of one place.
type sight struct {
	connected bool
	run       string // the server's run id, which cannot change on a connection
	problem   string // why this server can be no master at all: a Sentinel, say
	Replication

	asked  time.Time // when that was asked which was read last
	read   bool      // on this connection; text and marker are what it has
	text   string
	marker Marker
	noText bool      // what has its name is no string
	broken bool      // what has the marker's name is none
	since  time.Time // when marker, or its replication, came to tell of the memory that it does
	// turnedAt is when marker was first seen to have turned.
	turnedAt time.Time
	// rewritten is when it was heard by way of another database that its marker was
	// written anew: what was asked until then may have been answered before.
	rewritten time.Time
	ahead     bool // its marker's since lies in the future of its own clock
	// jump is by how much its clock jumped forward at least, not yet written down,
	// and jumpMost by how much at most.
	jump     time.Duration
	jumpMost time.Duration
	jumpedAt time.Time
	actedAt  time.Time // when the roster last had something written there

	silentSince time.Time // the beat that first found questions unanswered; zero: none are
	told        Standing  // how it stands
}

func (s *sight) absent() bool  { return s.read && s.text == "" && !s.broken }
func (s *sight) present() bool { return s.read && s.text != "" && !s.broken }

// forgotAt is when it was seen that it may have forgotten locks.
func (s *sight) forgotAt() time.Time {
	if s.jump > 0 && s.jumpedAt.After(s.since) {
		return s.jumpedAt
	}
	return s.since
}

// jumpedWithin: a jump that is not yet written down was seen so short a time ago.
func (s *sight) jumpedWithin(d time.Duration, now time.Time) bool {
	return s.jump > 0 && now.Sub(s.jumpedAt) < d
}

// A Roster is what this process knows of the set of masters. It decides who may
// vote, from the markers, and what has to be written to them. It holds no
// connection, reads no clock and takes no lock: its owner lets one goroutine at a time have it.
type Roster struct {
	servers []Server
	masters int
	fresh   bool   // the operator says that no lock can be held yet
	nonce   uint64 // another in each process, and for each set that it begins

	version   uint64 // rises with set, epoch and joined, and with jumps
	witnessed bool   // this process saw the set begin, so no lock is older

	set     string
	epoch   int64
	joined  []string
	learned time.Time      // when another process was found to have begun the epoch
	met     map[int]string // by master: who joined there when this process last saw the member's own marker
	unheard map[int]unheard
	heard   map[int]unheard // the same for those of which enough have heard
	runs    map[int]string  // by master: the run id of the server that was reached last
	// eviction is by which policy a master may delete locks, evicted that it may
	// have done so and that this is not on record.
	eviction map[int]string
	evicted  map[int]bool
	blank    map[int]bool  // masters seen without a marker when all of them were, so that they may begin as new
	used     usedDatabases // for masters whose markers are of the first version
	ttls     ttlMemory
	recalls  bool // longest was that of enough markers at once to be that of the set
	sights   map[Place]*sight
	reason   string    // why there is no set yet
	noSet    hindrance // the same, as the log has it
	newTold  string    // the set of which the log has it that it is new
	stood    standstill
	known    []MasterStatus // by master, as the Observer was told
	untold   News
	moved    map[int]time.Time // by database: when one of its places last stood otherwise than before
}

// Limits are what of the configuration decides who may vote and when.
type Limits struct {
	MasterTimeout time.Duration // how long a ballot waits for a master's vote
	ClockDrift    float64       // the share of a time by which clocks may run apart
	// RestartDelay is how long a master that may have forgotten locks does not
	// vote at least, and MaxQuarantine at most, where longer TTLs were granted.
	RestartDelay, MaxQuarantine time.Duration
}

// A Server is how a master is called, and whether it may be another server
// one day.
type Server struct {
	Name  string
	Moves bool
}

// New makes a Roster that knows nothing of the masters yet. nonce is a random number.
func New(servers []Server, fresh bool, nonce uint64) *Roster {
	masters := len(servers)
	return &Roster{
		servers: servers, masters: masters, fresh: fresh, nonce: nonce,
		epoch:    1,
		joined:   slices.Repeat([]string{"1"}, masters),
		met:      map[int]string{},
		runs:     map[int]string{},
		eviction: map[int]string{},
		evicted:  map[int]bool{},
		unheard:  map[int]unheard{},
		heard:    map[int]unheard{},
		blank:    map[int]bool{},
		sights:   map[Place]*sight{},
		reason:   "no lock master has been reached yet",
		moved:    map[int]time.Time{},
		known:    make([]MasterStatus, masters),
	}
}

func (r *Roster) sight(p Place) *sight {
	s := r.sights[p]
	if s == nil {
		s = &sight{told: Standing{State: Away}}
		r.sights[p] = s
	}
	return s
}

func (r *Roster) names(master int) string { return r.servers[master].Name }

func (r *Roster) moves(master int) bool { return r.servers[master].Moves }

// SetServer says how a master is called from now on.
func (r *Roster) SetServer(master int, server Server) { r.servers[master] = server }

func (r *Roster) changed() {
	r.version++
	r.untold.Changed = true
}

// Connected begins a new connection to a place. restarted tells that another
// server process answers than before at this master. A database that is used for
// the first time is none.
func (r *Roster) Connected(p Place, run, problem string, repl Replication, now time.Time) (restarted bool) {
	restarted = r.runs[p.Master] != "" && r.runs[p.Master] != run
	r.runs[p.Master] = run
	s, known := r.sight(p), r.sight(p)
	r.leaves(s, Marker{}, now)
	if known.run == "" {
		for other, o := range r.sights { // a jump that is not yet written down concerns this database, too
			if other.Master == p.Master && o.run == run && o.jump > known.jump {
				known = o
			}
		}
	}
	jump, jumpMost, jumpedAt := known.jump, known.jumpMost, known.jumpedAt
	if known.run != run {
		jump = 0
	}
	if p.DB == 0 {
		delete(r.blank, p.Master)
	}
	if restarted {
		delete(r.eviction, p.Master)
		delete(r.evicted, p.Master)
	}
	*s = sight{connected: true, run: run, problem: problem, Replication: repl, told: s.told,
		jump: jump, jumpMost: jumpMost, jumpedAt: jumpedAt}
	r.changed()
	return restarted
}

// Disconnected hears that a connection has ended, or that none could be opened,
// and why. It tells whether that is news.
func (r *Roster) Disconnected(p Place, reason string, now time.Time) bool {
	s := r.sight(p)
	r.leaves(s, Marker{}, now)
	s.connected, s.read = false, false
	return r.stands(p, s, Standing{State: Away, Reason: reason}, now)
}

// Asked hears when that was asked which a place's marker was read from last.
func (r *Roster) Asked(p Place, at time.Time) {
	if s := r.sights[p]; s != nil && at.After(s.asked) {
		s.asked = at
	}
}

// Checked takes what a place's marker is now and says how the place stands apart
// from the time, and what the marker is. It was asked for at the given time.
func (r *Roster) Checked(p Place, text string, broken bool, asked, now time.Time) (Standing, Marker) {
	s := r.sight(p)
	s.asked = asked
	news := !s.read || s.text != text || s.noText != broken
	s.noText = broken
	if news {
		next, ok := ParseMarker(text)
		r.leaves(s, next, now)
		if p.DB == 0 && next.Since > s.marker.Since && r.evicted[p.Master] {
			delete(r.evicted, p.Master) // that it may have forgotten is on record
			r.rewrites(p, now)
		}
		if s.turnedAt.IsZero() || next.Turned != s.marker.Turned {
			s.turnedAt = now
		}
		if !s.read || !s.marker.sameMemory(next) || broken {
			s.since = now
		}
		s.marker, broken = next, broken || text != "" && !ok
		s.actedAt, s.ahead = time.Time{}, false
	}
	s.read, s.text = true, text
	if news {
		s.broken = broken
	}
	if s.present() && p.DB == 0 {
		delete(r.blank, p.Master)
	}
	if s.present() && s.marker.Set == r.set && r.set != "" {
		news = r.learn(s, now) || news
	}
	if news {
		r.changed()
	}
	if s.isStale() {
		r.changed() // what is asked next has to be judged again
	}
	return r.judge(p, s), s.marker
}

// rewrites hears that by way of a place the markers of all databases of its master
// have been written anew.
func (r *Roster) rewrites(by Place, now time.Time) {
	for p, s := range r.sights {
		if p.Master == by.Master && p != by {
			s.rewritten = now
		}
	}
}

// recently is how old what was read may be for a step that other masters are told of.
const recently = 3 * BeatPause / 2

// isRecent: it was read so lately that it can be acted upon by way of other masters.
// A process that stood still finds here what was so before.
func (s *sight) isRecent(now time.Time) bool { return s.read && now.Sub(s.asked) <= recently }

// isStale: what was read last may be what was there before it was written anew.
func (s *sight) isStale() bool { return !s.rewritten.IsZero() && !s.asked.After(s.rewritten) }

// ClockIs hears what time it is on a master in quarantine, in ms. Where its
// memory is complete only from a later time on, its clock was ahead and has been
// put right: since is written anew, or the quarantine would last as long as the
// step was.
func (r *Roster) ClockIs(p Place, now int64) {
	if s := r.sight(p); s.present() && !s.ahead && s.marker.Since > now {
		s.ahead = true
		r.changed()
	}
}

// learn takes over what a marker of the set says of the set. It
// tells whether that is news of who the masters are.
func (r *Roster) learn(s *sight, now time.Time) bool {
	r.recalls = r.recalls || r.remembering() >= r.tellAll()
	if s.marker.Members != r.masters {
		return false
	}
	epoch, joined := max(r.epoch, s.marker.Epoch), together(r.joined, s.marker.Joined)
	if epoch == r.epoch && slices.Equal(joined, r.joined) {
		return false
	}
	r.epoch, r.joined, r.learned = epoch, joined, now
	return true
}

// remembering counts the masters that have a marker of the set.
func (r *Roster) remembering() int {
	n := 0
	for i := range r.masters {
		if s := r.sights[Place{i, 0}]; s != nil && s.present() && s.marker.Set == r.set {
			n++
		}
	}
	return n
}

// Jumped notes that a master's clock has jumped forward, which holds for all of
// its databases, also those whose connection is just being dialled. A jump that
// could not be written down yet keeps its time.
func (r *Roster) Jumped(master int, by Jump, now time.Time) {
	for p, s := range r.sights {
		if p.Master != master {
			continue
		}
		if s.jump == 0 {
			s.jumpedAt, s.jumpMost = now, 0
		}
		s.jump += by.Least
		s.jumpMost += by.Most
		s.actedAt = time.Time{}
	}
	r.changed()
}

// Databases are those in use, in order.
func (r *Roster) Databases() []int {
	var dbs []int
	for p := range r.sights {
		if !slices.Contains(dbs, p.DB) {
			dbs = append(dbs, p.DB)
		}
	}
	slices.Sort(dbs)
	return dbs
}
