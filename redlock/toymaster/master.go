package toymaster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/sim"
)

// A Master is a Redis server in memory, with a clock of its own and as many commands
// as the lock plane needs. It lives in a sim.World, in whose one thread everything happens.
type Master struct {
	evictsBy string // its maxmemory-policy; empty: its memory is unlimited
	Name     string

	Clock     Clock
	DBs       map[int]map[string]Entry
	Scripts   map[string]string // SHA1 to text
	sessions  []*Session
	lastID    int64
	runs      int
	paused    bool
	Databases int
	Away      bool      // no process listens
	refusal   string    // the error reply to commands (refuses); empty: none
	Deaf      bool      // it does not allow SUBSCRIBE
	NoRole    bool      // it does not allow ROLE
	Replid    [2]string // its replication ids in INFO, if the first is not empty
	replica   bool
	Backlog   bool  // it was a replica, or has one, and counts what it writes
	Offset    int64 // that count
	Watch     func(Execution)
	Flushed   func()                     // it has just lost all its keys; nil: nobody asks
	Reloaded  func()                     // it has just begun a new run with all its keys
	Edit      func(script string) string // changes a script before it runs; nil: nothing does
	lua       *lua.LState                // runs the scripts; nil: none has run
	caller    *Session                   // has called the script that runs
	misread   time.Duration              // added to its clock for the last command of each transaction
}

const WrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// An Entry is a string under its key, a hash or a sorted set, or a list that only GET and GETRANGE tell from a string.
type Entry struct {
	Value   string
	Expires int64 // in ms of the master's clock; 0: never
	IsList  bool
	Packed  bool // it is a hash or a sorted set, and value is its payload
}

// dump is what DUMP answers.
func (e Entry) dump() []byte {
	if e.Packed {
		return []byte(e.Value)
	}
	return DumpString(e.Value)
}

// An Execution is one command that a master has executed.
type Execution struct {
	At     time.Time
	Master string
	Client string
	Conn   *Conn
	Args   [][]byte
	Reply  []byte
}

func (x Execution) String() string {
	words := ""
	for i, a := range x.Args {
		if i > 0 {
			words += " "
		}
		words += fmt.Sprintf("%.60s", a)
	}
	return fmt.Sprintf("%s %s %s -> %q", x.Master, x.Client, words, x.Reply)
}

// A Clock follows the bubble's clock at a rate of its own, and can jump.
type Clock struct {
	began  time.Time
	Rate   float64
	offset time.Duration
}

// now is the clock's time in microseconds.
func (c Clock) now() int64 {
	ran := float64(time.Since(c.began)) * c.Rate
	return c.began.Add(time.Duration(ran) + c.offset).UnixMicro()
}

func New(name string) *Master {
	return &Master{
		Name:      name,
		Clock:     Clock{began: time.Now(), Rate: 1},
		DBs:       map[int]map[string]Entry{},
		Scripts:   map[string]string{},
		runs:      1,
		Databases: 16,
	}
}

// runID is different in every run of the server's process.
func (m *Master) runID() string { return fmt.Sprintf("%s-run-%d", m.Name, m.runs) }

// replication is the part of INFO about replication.
func (m *Master) replication() string {
	role := "master"
	if m.replica {
		role = "slave"
	}
	return fmt.Sprintf("role:%s\r\nconnected_slaves:0\r\nmaster_repl_offset:%d\r\nmaster_replid:%s\r\nmaster_replid2:%s", role, m.Offset, cmp.Or(m.Replid[0], "first-of-"+m.Name), cmp.Or(m.Replid[1], strings.Repeat("0", 40)))
}

// BecomeReplica makes it a replica of another server, which has no keys yet.
func (m *Master) BecomeReplica() {
	m.replica, m.Backlog = true, true
}

// BecomeMaster makes it a master again, with the keys that it copied as a replica.
func (m *Master) BecomeMaster(copied map[int]map[string]Entry) {
	m.lastID++
	m.replica, m.Replid = false, [2]string{fmt.Sprintf("%d-of-%s", m.lastID, m.Name), "of-the-other"}
	m.DBs = copied
}

// Copied returns a copy of its keys, like that of a replica which falls behind from now
// on.
func (m *Master) Copied() map[int]map[string]Entry {
	dbs := map[int]map[string]Entry{}
	for db, keys := range m.DBs {
		dbs[db] = maps.Clone(keys)
	}
	return dbs
}

// Millis is the master's time as its keys see it.
func (m *Master) Millis() int64 { return m.Clock.now() / 1000 }

// Misreads makes it stand still for a while before the last command of each transaction.
func (m *Master) Misreads(d time.Duration) {
	m.misread = d
}

// Jump moves the master's clock.
func (m *Master) Jump(d time.Duration) {
	m.Clock.offset += d
}

// Refuse makes commands fail with an error such as "LOADING x"; "" ends that.
func (m *Master) Refuse(text string) {
	m.refusal = text
}

func (m *Master) Flush() {
	m.empty()
}

func (m *Master) empty() {
	m.DBs = map[int]map[string]Entry{}
	if m.Flushed != nil {
		m.Flushed()
	}
}

// FlushDB empties one database.
func (m *Master) FlushDB(db int) {
	delete(m.DBs, db)
}

// Value reads a key of database 0 without the network. It is "" if the key is absent.
func (m *Master) Value(key string) string {
	e, _ := m.Find(0, []byte(key))
	return e.Value
}

// TTL is what PTTL would return for a key of database 0.
func (m *Master) TTL(key string) time.Duration {
	n, _ := resp.ParseInteger(m.pttl(0, []byte(key)))
	if n < 0 {
		return time.Duration(n)
	}
	return time.Duration(n) * time.Millisecond
}

// Put stores a key of database 0 without the network, as another client would.
func (m *Master) Put(key, value string, ttl time.Duration) {
	e := Entry{Value: value}
	if ttl > 0 {
		e.Expires = m.Millis() + ttl.Milliseconds()
	}
	m.Store(0, []byte(key), e)
}

func (m *Master) Remove(key string) {
	delete(m.DBs[0], key)
}

// accept begins a session for a connection. It returns false if no process listens. If
// the process is paused, its kernel accepts connections.
func (m *Master) accept(c *Conn) bool {
	if m.Away {
		return false
	}
	m.lastID++
	s := &Session{Master: m, conn: c, ID: m.lastID}
	if m.paused {
		c.out.pause()
	}
	m.sessions = append(m.sessions, s)
	c.out.tell(s.look)
	return true
}

// Pause is SIGSTOP. The master executes what is sent only after resume, even on
// connections that were closed meanwhile.
func (m *Master) Pause() {
	m.paused = true
	for _, s := range m.sessions {
		s.conn.out.pause()
	}
}

// Resume is SIGCONT. The sessions go on in an order that the seed chooses, because a real
// server may serve its sockets in any order.
func (m *Master) Resume() {
	m.paused = false
	now := time.Now()
	for _, s := range m.sessions {
		later := sim.Hash(s.conn.Link.draw(resumption, now), uint64(s.ID)) % uint64(2*time.Millisecond)
		s.conn.out.resume(now.Add(time.Duration(later)))
	}
}

// ResumeNewestFirst is resume in a fixed order. The youngest session goes on at once, and
// each older one a gap later.
func (m *Master) ResumeNewestFirst(gap time.Duration) {
	m.paused = false
	now := time.Now()
	for i, s := range m.sessions {
		s.conn.out.resume(now.Add(time.Duration(len(m.sessions)-1-i) * gap))
	}
}

// Kill ends the process. What it has not executed is lost.
func (m *Master) Kill() {
	sessions := m.sessions
	m.sessions, m.Away, m.paused = nil, true, false
	now := time.Now()
	for _, s := range sessions {
		// This order matters: a session that has read its end tells the proxy.
		s.conn.in.cut(now, func(bytes int) int { return bytes })
		s.conn.out.fail(errReset)
	}
}

// Restart starts another process, with the old keys or with none.
func (m *Master) Restart(remembers bool) {
	m.Away = false
	m.runs++
	m.lastID = 0
	m.refusal = ""
	m.Scripts = map[string]string{}
	if !remembers {
		m.empty()
	} else if m.Reloaded != nil {
		m.Reloaded()
	}
}

// disconnect is CLIENT KILL: the session executes nothing more.
func (m *Master) disconnect(id int64) bool {
	i := slices.IndexFunc(m.sessions, func(s *Session) bool { return s.ID == id })
	if i < 0 {
		return false
	}
	s := m.sessions[i]
	m.sessions = slices.Delete(m.sessions, i, i+1)
	s.killed = true
	s.conn.in.cut(time.Now(), func(int) int { return 0 })
	s.conn.out.fail(errReset)
	return true
}

// memory is the part of INFO about eviction.
func (m *Master) memory() string {
	if m.evictsBy == "" {
		return "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"
	}
	return "# Memory\r\nmaxmemory:1000000\r\nmaxmemory_policy:" + m.evictsBy + "\r\n"
}

// Configure sets its maxmemory-policy.
func (m *Master) Configure(policy string) {
	m.evictsBy = policy
}
