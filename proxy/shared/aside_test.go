package shared

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// readSize is more than the loop reads at once.
const readSize = 64 << 10

func unlimited() *conn.Budget { return conn.NewBudget(func() int64 { return 1 << 30 }) }

// When no memory is left for what clients do not take, nothing more is read from the server. Nothing
// is lost, and all memory is given back.
func TestMemoryForWhatIsPutAside(t *testing.T) {
	r := newRig(t)
	const clients, size, limit = 100, 8 << 10, 64 << 10
	r.watched = true // nobody is ended
	r.limit.Store(limit)
	reply := fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size))
	var members []*fakeMember
	for range clients {
		m := r.member(0)
		m.Member.client.Lock() // somebody else writes to the client
		members = append(members, m)
	}
	server := <-r.servers
	for _, m := range members {
		m.sends("a", 1)
	}
	go say(server, strings.Repeat(reply, clients))
	c := members[0].conn.Load()
	stopped := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.full)
	}
	eventually(t, "reading has stopped", func() bool { return stopped() > 0 })
	if used := r.memory.InUse(); used < limit-int64(len(reply)) || used > limit+3*readSize {
		t.Errorf("%d bytes are in use", used)
	}
	for _, m := range members {
		m.Member.client.Unlock()
	}
	for _, m := range members {
		expect(t, m.client, reply)
		if !m.Wait(patience) {
			t.Error("a reply is missing")
		}
	}
	eventually(t, "all memory is given back", func() bool { return r.memory.InUse() == 0 })
	if stopped() > 0 {
		t.Error("nothing is read although the clients have all")
	}
}

// When there is memory again, others need not wait for a client that was given none. It may go on
// sharing.
func TestALackOfMemoryEnds(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test relieves
	r.limit.Store(1)
	slow, other := r.member(0), r.member(0)
	slow.Member.client.Lock() // it takes nothing
	server := <-r.servers
	elsewhere := r.member(1)
	another := <-r.servers
	slow.sends("a", 1)
	c := slow.conn.Load()
	go say(server, "+1\r\n")
	eventually(t, "reading has stopped", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.full) > 0
	})
	c.relieve()
	other.sends("b", 1)
	say(server, "+2\r\n")
	for range 2 { // then the loop, if there is one, has seen what came before
		elsewhere.sends("c", 1)
		say(another, "+3\r\n")
		if !elsewhere.Wait(patience) {
			t.Fatal("nothing is read from another connection")
		}
	}
	c.mu.Lock()
	stopped := len(c.full) > 0
	c.mu.Unlock()
	if !stopped || other.Drained() {
		t.Error("reading went on without memory")
	}
	r.limit.Store(1 << 30)
	c.relieve()
	expect(t, other.client, "+2\r\n")
	slow.Member.client.Unlock()
	expect(t, slow.client, "+1\r\n")
	if slow.IsSlow() {
		t.Error("nobody waited for it for long, and it must not share any more")
	}
}

// Whatever happens to clients and connections, in whatever order, all memory is given back.
func TestMemoryIsGivenBackInAnyOrder(t *testing.T) {
	r := newRig(t)
	r.watched = true // only the test ends members
	var most int64
	for seed := range uint64(30) {
		w := &asideWorld{rig: r, t: t, random: rand.New(rand.NewPCG(seed, 1)), held: map[*fakeMember]bool{}}
		most = max(most, w.run())
		eventually(t, fmt.Sprintf("all memory of world %d is given back", seed), func() bool { return r.memory.InUse() == 0 })
	}
	if wrong := r.wrong.Load(); wrong != nil {
		t.Error(*wrong)
	}
	if most == 0 {
		t.Error("nothing was put aside")
	}
}

// An asideWorld has members of one connection, and things happen to them at random.
type asideWorld struct {
	*rig
	t       *testing.T
	random  *rand.Rand
	members []*fakeMember
	held    map[*fakeMember]bool // the test has locked the client
	server  net.Conn             // nil: no connection is open
	says    chan string          // what the server sends; closed to end the connection
	owed    string               // replies that the server has not sent
}

// run does many things and ends all. It returns the most memory that was in use.
func (w *asideWorld) run() (most int64) {
	w.limit.Store(1 << 30)
	steps := []func(*fakeMember){w.letGo, w.leave, w.abandon, w.end, w.breakDown, w.resize}
	for range 5 {
		steps = append(steps, w.ask, w.reply, w.hold)
	}
	for range 200 {
		for len(w.members) < 4 {
			w.arrive()
		}
		steps[w.random.IntN(len(steps))](w.members[w.random.IntN(len(w.members))])
		most = max(most, w.memory.InUse())
	}
	w.breakDown(nil)
	for len(w.members) > 0 {
		w.end(w.members[0])
	}
	return most
}

func (w *asideWorld) arrive() {
	m := w.member(0)
	w.members = append(w.members, m)
	go func() { _, _ = io.Copy(io.Discard, m.client) }()
	w.meetServer()
}

// meetServer makes the server of a new connection send what it is told to.
func (w *asideWorld) meetServer() {
	if w.server != nil {
		return
	}
	server, says := <-w.servers, make(chan string, 1000)
	w.server, w.says, w.owed = server, says, ""
	go func() {
		for text := range says {
			say(server, text)
		}
		_ = server.Close()
	}()
}

// ask has a member send a command whose reply may be long.
func (w *asideWorld) ask(m *fakeMember) {
	if on := m.On(Server{Name: "a"}, wire.RESP2); m.Failed() || !on && !m.Drained() {
		w.end(m)
		return
	} else if !on {
		w.letGo(m)
		m.join(w.rig)
		w.meetServer()
	}
	m.Expect(upstream.Expectation{Count: 1})
	sent := m.conn.Load().send(m.Member, []byte("a")) // as Write, and tells whether the member was gone
	if m.expected = nil; !sent {
		return
	}
	size := w.random.IntN(40 << 10)
	w.owed += fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size))
}

// reply has the server send a part of what it owes.
func (w *asideWorld) reply(*fakeMember) {
	if w.server != nil {
		n := w.random.IntN(len(w.owed) + 1)
		w.says <- w.owed[:n]
		w.owed = w.owed[n:]
	}
}

// hold writes to the client as somebody else.
func (w *asideWorld) hold(m *fakeMember) {
	if !w.held[m] {
		w.held[m] = m.Member.client.TryLock()
	}
}

func (w *asideWorld) letGo(m *fakeMember) {
	if w.held[m] {
		w.held[m] = false
		m.Member.client.Unlock()
	}
}

func (w *asideWorld) leave(m *fakeMember)   { _ = m.client.Close() }
func (w *asideWorld) abandon(m *fakeMember) { m.Abandon() }

// end ends a member as its session does.
func (w *asideWorld) end(m *fakeMember) {
	w.letGo(m)
	_, _ = m.owner.client.Close(), m.client.Close()
	m.Close()
	w.members = slices.DeleteFunc(w.members, func(other *fakeMember) bool { return other == m })
}

// breakDown has the server end the connection. That is seen only while it is read.
func (w *asideWorld) breakDown(*fakeMember) {
	if w.server == nil {
		return
	}
	close(w.says)
	w.server = nil
	w.mu.Lock()
	c := w.all[len(w.all)-1]
	w.mu.Unlock()
	eventually(w.t, "the connection is over", func() bool {
		for _, m := range w.members {
			if isFull(c, m.Member) {
				w.letGo(m)
			}
		}
		return c.over.Load()
	})
}

func isFull(c *connection, m *Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.full, m)
}

// resize changes limits.memory.
func (w *asideWorld) resize(*fakeMember) { w.limit.Store(int64(w.random.IntN(128 << 10))) }

// A client in whose writing there is a defect takes no memory.
func TestADefectInWritingGivesMemoryBack(t *testing.T) {
	near, _ := proxytest.Pair(t)
	owner := &fakeOwner{}
	c := newConnection(&Pool{memory: unlimited(), outOfSync: func(error) {}}, laneKey{}, conn.NewSocket(near, &conn.Clock{}))
	m := &Member{client: &defective{}, owner: owner}
	m.conn.Store(c)
	c.putAside(m, make([]byte, 1000), 1)
	eventually(t, "the owner is told", func() bool { return owner.broken.Load() > 0 })
	if used := c.pool.memory.InUse(); used != 0 || !m.Failed() || !m.gone.Load() {
		t.Errorf("%d bytes are in use; failed: %v, nothing follows: %v", used, m.Failed(), m.gone.Load())
	}
}

// A defective client panics when it is written to.
type defective struct{ collector }

func (*defective) Write([]byte) (int, error) { panic("a defect") }
