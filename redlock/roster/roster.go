package roster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/timing"
)

// A Place is one database of one master.
type Place struct {
	Master int // its index in the configuration
	DB     int
}

// A view is what this process saw last of one place.
type view struct {
	connected bool
	run       string // the server's run id; it cannot change on a connection
	problem   string // why this server cannot be a master at all, such as a Sentinel
	Replication

	asked  time.Time // when the question of the last reading was asked
	read   bool      // the marker was read on this connection, into text and marker
	text   string
	marker marker.Marker
	broken bool      // the key of the marker holds no marker
	since  time.Time // when marker or replication began to tell of the present memory
	// turnedAt is when the present turn of marker was first seen.
	turnedAt time.Time
	// rewritten is when its marker was written anew by way of another database. An answer to an
	// earlier question may show the marker before that.
	rewritten time.Time
	ahead     bool // its marker's Since lies in the future of its own clock
	// jump is the least amount by which its clock jumped forward and that is not yet written
	// down. jumpedAt is when that began. last is the latest part of it, seen at lastAt.
	jump     time.Duration
	jumpedAt time.Time
	last     Jump
	lastAt   time.Time
	actedAt  time.Time // when the roster last planned a write there
	blank    bool      // it had no marker when no master had one, so it may begin as new

	told Standing // its standing

	lacks ttlMemory // the lost records when marker began to tell of the present memory
}

func (s *view) absent() bool  { return s.read && s.text == "" && !s.broken }
func (s *view) present() bool { return s.read && s.text != "" && !s.broken }

// tellsAfter tells whether the marker, or its lack, was read after at. A marker of a later version is not.
func (s *view) tellsAfter(at time.Time) bool { return s.read && !s.broken && s.asked.After(at) }

// forgotAt returns when this process saw that the place may have forgotten locks.
func (s *view) forgotAt() time.Time {
	if s.jump > 0 && s.jumpedAt.After(s.since) {
		return s.jumpedAt
	}
	return s.since
}

// justJumped tells whether an unwritten jump was seen so recently that other masters may still
// be seen to make it.
func (s *view) justJumped(now time.Time) bool {
	return s.jump > 0 && now.Sub(s.lastAt) < standstillPause
}

// A master is what this process remembers of one master of its list or on record, whether it is
// connected or not.
type master struct {
	run      string        // the run id of the server reached last
	met      string        // the member that this process last found in order
	kept     marker.Marker // its marker as this process read it last, also on an earlier connection
	before   string        // its entry of joined before a join that this process has not read in a marker yet
	outdated bool          // it was replaced in the set before this one
	// eviction is the policy by which it may delete locks. evicted says that it may have done so and
	// that no marker records this.
	eviction string
	evicted  bool
	shown    MasterStatus // the status that was last announced
}

// of returns what is remembered of a master.
func (r *Roster) of(i int) *master {
	m := r.all[i]
	if m == nil {
		m = &master{}
		r.all[i] = m
	}
	return m
}

// A Roster is what this process knows of the set of masters. From the markers it decides who
// may vote, and what to write to the markers. It holds no connection, reads no clock and takes
// no lock. Its owner lets one goroutine at a time use it.
type Roster struct {
	servers []Server
	masters int            // the number of places that count
	fresh   bool           // the operator says that no lock can be held yet
	outrun  map[Place]bool // these had a marker of a later version last, so this process does not know who the masters are
	limits  Limits         // of the last Tick
	nonce   uint64         // differs for each process and for each set that it begins

	version   uint64 // rises when set, epoch, joined or a jump changes
	witnessed bool   // this process saw the set begin, so no lock is older

	set       string
	epoch     int64
	joined    members.List
	learned   time.Time // when this process learned of other members
	listed    time.Time // when it learned of some that other lists of masters must have, too, while it ran
	ttls      ttlMemory
	token     int64           // the largest fencing token read in a marker of the set
	recalls   bool            // N-Q+1 markers were once read together, so the longest TTL known is the set's
	all       map[int]*master // by index
	views     map[Place]*view
	dbs       []int      // the databases of views, in order
	reason    string     // why there is no set yet
	noSet     setProblem // the reason as last logged
	newTold   string     // the set that was logged as new
	stood     standstill
	unsettled bool // as in Ready
	untold    Ready
	moved     map[int]time.Time // by database: when the state of one of its places last changed
}

// Limits are the part of the configuration that decides who may vote and when.
type Limits = timing.Limits

// A Server is the name of a master, and whether it may become another server one day.
type Server struct {
	Name  string
	Moves bool
}

// New makes a Roster that knows nothing of the masters yet. fresh is the operator's word that
// no lock can be held on them. nonce is a random number.
func New(servers []Server, fresh bool, nonce uint64) *Roster {
	masters := len(servers)
	return &Roster{
		servers: servers, masters: masters, fresh: fresh, nonce: nonce,
		epoch:  1,
		joined: members.New(masters),
		all:    map[int]*master{},
		views:  map[Place]*view{},
		outrun: map[Place]bool{},
		reason: "no lock master has been reached yet",
		moved:  map[int]time.Time{},
	}
}

func (r *Roster) view(p Place) *view {
	s := r.views[p]
	if s == nil {
		s = &view{told: Standing{State: Unreachable}}
		r.views[p] = s
		if at, used := slices.BinarySearch(r.dbs, p.DB); !used {
			r.dbs = slices.Insert(r.dbs, at, p.DB)
		}
	}
	return s
}

func (r *Roster) names(master int) string {
	if master < len(r.servers) {
		return r.servers[master].Name
	}
	return cmp.Or(r.member(master).Name, fmt.Sprintf("number %d", master+1))
}

func (r *Roster) moves(master int) bool { return master < len(r.servers) && r.servers[master].Moves }

func (r *Roster) changed() {
	r.version++
	r.untold.Changed = true
}

// rewrites records that a write through one place has renewed the markers of all databases of
// its master.
func (r *Roster) rewrites(by Place, now time.Time) {
	for p, s := range r.views {
		if p.Master == by.Master && p != by {
			s.rewritten = now
		}
	}
}

const recently = timing.Recently

// isRecent tells whether the place was read so recently that the roster may act on it through
// other masters. A process that stood still finds only old readings.
func (s *view) isRecent(now time.Time) bool { return ago(s.asked, now) <= recently }

// hasLapsed tells whether the marker was missing long before now. Meanwhile another process may have
// written it, and the master may have granted a lock and forgotten that, too. So what was read before
// does not count, and the next reading finds the marker missing anew.
func (s *view) hasLapsed(now time.Time) bool { return s.absent() && !s.isRecent(now) }

// lapse forgets a reading that has lapsed, and has the next one judged. It does not ask for a Tick: the
// answers of a slow master are all too old, and would call for one another.
func (r *Roster) lapse(s *view, now time.Time) {
	if s.hasLapsed(now) {
		s.read = false
		r.version++
	}
}

// ago returns how long ago it was, by the monotonic clock or the wall clock, whichever is more: while
// this machine is suspended, only the wall clock may go on.
func ago(at, now time.Time) time.Duration { return max(now.Sub(at), now.Round(0).Sub(at.Round(0))) }

// isStale tells whether the last reading may show the marker before it was written anew.
func (s *view) isStale() bool { return !s.rewritten.IsZero() && !s.asked.After(s.rewritten) }

// learn takes over what a marker of the set says about the set. It tells whether the members or
// the epoch have changed.
func (r *Roster) learn(s *view, now time.Time) bool {
	r.recalls = r.recalls || r.remembering() >= r.tellAll()
	if !r.joined.Fits(s.marker.Joined) {
		return false
	}
	epoch, joined := max(r.epoch, s.marker.Epoch), r.joined.Together(s.marker.Joined)
	for i, m := range r.all {
		if joined.Who(i) == s.marker.Joined.Who(i) {
			m.before = ""
		}
	}
	if epoch == r.epoch && slices.Equal(joined, r.joined) {
		return false
	}
	r.record(epoch, joined, now)
	return true
}

// count counts the masters of which this is so by what was read in database 0.
func (r *Roster) count(is func(i int, s *view) bool) (n int) {
	for i := range r.masters {
		if s := r.views[Place{i, 0}]; s != nil && is(i, s) {
			n++
		}
	}
	return n
}

// remembering counts the masters that have a marker of the set in database 0, and no other one's.
func (r *Roster) remembering() int {
	return r.count(func(_ int, s *view) bool { return s.present() && s.marker.Set == r.set && s.marker.DB == 0 })
}
