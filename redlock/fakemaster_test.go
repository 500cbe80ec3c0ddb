package redlock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"redlock-proxy/redlock/resp"
)

// A fakeMaster is a Redis server in memory, with a clock of its own and as many commands
// as the lock plane needs. It lives in a sim.World, in whose one thread everything happens.
type fakeMaster struct {
	evictsBy string // its maxmemory-policy; empty: its memory is unlimited
	name     string

	clock     fakeClock
	dbs       map[int]map[string]entry
	scripts   map[string]string // SHA1 to text
	sessions  []*fakeSession
	lastID    int64
	runs      int
	paused    bool
	databases int
	away      bool      // no process listens
	refusal   string    // the error reply to commands (refuses); empty: none
	deaf      bool      // it does not allow SUBSCRIBE
	noRole    bool      // it does not allow ROLE
	replid    [2]string // its replication ids in INFO, if the first is not empty
	replica   bool
	backlog   bool  // it was a replica, or has one, and counts what it writes
	offset    int64 // that count
	watch     func(execution)
	flushed   func()        // it has just lost all its keys; nil: nobody asks
	reloaded  func()        // it has just begun a new run with all its keys
	bareDEL   bool          // to release.lua all values are equal
	lua       *lua.LState   // runs the scripts; nil: none has run
	caller    *fakeSession  // has called the script that runs
	misread   time.Duration // added to its clock for the last command of each transaction
	claimed   bool          // a fault of the simulation uses it
}

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value"

// An entry is a string under its key, a hash or a sorted set, or a list that only GET and GETRANGE tell from a string.
type entry struct {
	value   string
	expires int64 // in ms of the master's clock; 0: never
	isList  bool
	packed  bool // it is a hash or a sorted set, and value is its payload
}

// dump is what DUMP answers.
func (e entry) dump() []byte {
	if e.packed {
		return []byte(e.value)
	}
	return dumpString(e.value)
}

// An execution is one command that a master has executed.
type execution struct {
	at     time.Time
	master string
	client string
	conn   *fakeConn
	probes bool // it is part of a probe of its stream
	args   [][]byte
	reply  []byte
}

func (x execution) String() string {
	return fmt.Sprintf("%s %s %s -> %q", x.master, x.client, summary(x.args), x.reply)
}

// summary returns a command as text. Our own scripts go by their file names.
func summary(args [][]byte) string {
	words := ""
	for i, a := range args {
		if i > 0 {
			words += " "
		}
		if name, ours := scriptNames[string(a)]; ours && i == 1 {
			words += name
		} else {
			words += fmt.Sprintf("%.60s", a)
		}
	}
	return words
}

// A fakeClock follows the bubble's clock at a rate of its own, and can jump.
type fakeClock struct {
	began  time.Time
	rate   float64
	offset time.Duration
}

// now is the clock's time in microseconds.
func (c fakeClock) now() int64 {
	ran := float64(time.Since(c.began)) * c.rate
	return c.began.Add(time.Duration(ran) + c.offset).UnixMicro()
}

func newFakeMaster(name string) *fakeMaster {
	return &fakeMaster{
		name:      name,
		clock:     fakeClock{began: time.Now(), rate: 1},
		dbs:       map[int]map[string]entry{},
		scripts:   map[string]string{},
		runs:      1,
		databases: 16,
	}
}

// runID is different in every run of the server's process.
func (m *fakeMaster) runID() string { return fmt.Sprintf("%s-run-%d", m.name, m.runs) }

// replication is the part of INFO about replication.
func (m *fakeMaster) replication() string {
	role := "master"
	if m.replica {
		role = "slave"
	}
	return fmt.Sprintf("role:%s\r\nconnected_slaves:0\r\nmaster_repl_offset:%d\r\nmaster_replid:%s\r\nmaster_replid2:%s", role, m.offset, cmp.Or(m.replid[0], "first-of-"+m.name), cmp.Or(m.replid[1], strings.Repeat("0", 40)))
}

// becomeReplica makes it a replica of another server, which has no keys yet.
func (m *fakeMaster) becomeReplica() {
	m.replica, m.backlog = true, true
}

// becomeMaster makes it a master again, with the keys that it copied as a replica.
func (m *fakeMaster) becomeMaster(copied map[int]map[string]entry) {
	m.lastID++
	m.replica, m.replid = false, [2]string{fmt.Sprintf("%d-of-%s", m.lastID, m.name), "of-the-other"}
	m.dbs = copied
}

// copied returns a copy of its keys, like that of a replica which falls behind from now
// on.
func (m *fakeMaster) copied() map[int]map[string]entry {
	dbs := map[int]map[string]entry{}
	for db, keys := range m.dbs {
		dbs[db] = maps.Clone(keys)
	}
	return dbs
}

// millis is the master's time as its keys see it.
func (m *fakeMaster) millis() int64 { return m.clock.now() / 1000 }

// misreads makes it stand still for a while before the last command of each transaction.
func (m *fakeMaster) misreads(d time.Duration) {
	m.misread = d
}

// jump moves the master's clock.
func (m *fakeMaster) jump(d time.Duration) {
	m.clock.offset += d
}

// refuse makes commands fail with an error such as "LOADING x"; "" ends that.
func (m *fakeMaster) refuse(text string) {
	m.refusal = text
}

func (m *fakeMaster) flush() {
	m.empty()
}

func (m *fakeMaster) empty() {
	m.dbs = map[int]map[string]entry{}
	if m.flushed != nil {
		m.flushed()
	}
}

// value reads a key of database 0 without the network. It is "" if the key is absent.
func (m *fakeMaster) value(key string) string {
	e, _ := m.find(0, []byte(key))
	return e.value
}

// ttl is what PTTL would return for a key of database 0.
func (m *fakeMaster) ttl(key string) time.Duration {
	n, _ := resp.ParseInteger(m.pttl(0, []byte(key)))
	if n < 0 {
		return time.Duration(n)
	}
	return time.Duration(n) * time.Millisecond
}

// put stores a key of database 0 without the network, as another client would.
func (m *fakeMaster) put(key, value string, ttl time.Duration) {
	e := entry{value: value}
	if ttl > 0 {
		e.expires = m.millis() + ttl.Milliseconds()
	}
	m.store(0, []byte(key), e)
}

func (m *fakeMaster) remove(key string) {
	delete(m.dbs[0], key)
}

// accept begins a session for a connection. It returns false if no process listens. If
// the process is paused, its kernel accepts connections.
func (m *fakeMaster) accept(c *fakeConn) bool {
	if m.away {
		return false
	}
	m.lastID++
	s := &fakeSession{master: m, conn: c, id: m.lastID}
	if m.paused {
		c.out.pause()
	}
	m.sessions = append(m.sessions, s)
	c.out.tell(s.look)
	return true
}

// pause is SIGSTOP. The master executes what is sent only after resume, even on
// connections that were closed meanwhile.
func (m *fakeMaster) pause() {
	m.paused = true
	for _, s := range m.sessions {
		s.conn.out.pause()
	}
}

// resume is SIGCONT. The sessions go on in an order that the seed chooses, because a real
// server may serve its sockets in any order.
func (m *fakeMaster) resume() {
	m.paused = false
	now := time.Now()
	for _, s := range m.sessions {
		later := hash(s.conn.link.draw(resumption, now), uint64(s.id)) % uint64(2*time.Millisecond)
		s.conn.out.resume(now.Add(time.Duration(later)))
	}
}

// resumeNewestFirst is resume in a fixed order. The youngest session goes on at once, and
// each older one a gap later.
func (m *fakeMaster) resumeNewestFirst(gap time.Duration) {
	m.paused = false
	now := time.Now()
	for i, s := range m.sessions {
		s.conn.out.resume(now.Add(time.Duration(len(m.sessions)-1-i) * gap))
	}
}

// kill ends the process. What it has not executed is lost.
func (m *fakeMaster) kill() {
	sessions := m.sessions
	m.sessions, m.away, m.paused = nil, true, false
	now := time.Now()
	for _, s := range sessions {
		// This order matters: a session that has read its end tells the proxy.
		s.conn.in.cut(now, func(bytes int) int { return bytes })
		s.conn.out.fail(errReset)
	}
}

// restart starts another process, with the old keys or with none.
func (m *fakeMaster) restart(remembers bool) {
	m.away = false
	m.runs++
	m.lastID = 0
	m.refusal = ""
	m.scripts = map[string]string{}
	if !remembers {
		m.empty()
	} else if m.reloaded != nil {
		m.reloaded()
	}
}

// disconnect is CLIENT KILL: the session executes nothing more.
func (m *fakeMaster) disconnect(id int64) bool {
	i := slices.IndexFunc(m.sessions, func(s *fakeSession) bool { return s.id == id })
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
func (m *fakeMaster) memory() string {
	if m.evictsBy == "" {
		return "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"
	}
	return "# Memory\r\nmaxmemory:1000000\r\nmaxmemory_policy:" + m.evictsBy + "\r\n"
}

// configure sets its maxmemory-policy.
func (m *fakeMaster) configure(policy string) {
	m.evictsBy = policy
}
