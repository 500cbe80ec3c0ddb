package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

const patience = 10 * time.Second

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(what + " does not come")
	}
}

// A fakeOwner counts what it is told, and ends a client that does not read.
type fakeOwner struct {
	client *loop.Socket
	unread atomic.Int32
	defect bool // Unread panics
}

func (o *fakeOwner) Confirmed(wire.Confirmation) {}
func (o *fakeOwner) Unread() {
	o.unread.Add(1)
	o.client.Abandon()
	if o.defect {
		panic("a defect")
	}
}

// A fakeMember is a member whose client is the test.
type fakeMember struct {
	*Member
	t      *testing.T
	client net.Conn
	owner  *fakeOwner
}

// A rig is a pool whose servers the test plays.
type rig struct {
	*Pool
	t       *testing.T
	servers chan net.Conn
	wrong   atomic.Pointer[error]
	loop    *loop.Loop
	down    atomic.Bool
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, servers: make(chan net.Conn, 100), loop: proxytest.Loop(t)}
	r.Pool = NewPool(r.loop, unlimited, func(err error) { r.wrong.Store(&err) })
	t.Cleanup(r.Close)
	return r
}

func (r *rig) dial(context.Context) (net.Conn, error) {
	if r.down.Load() {
		return nil, errors.New("down")
	}
	near, far := proxytest.Pair(r.t)
	go func() { // the login is one PING
		hears(r.t, far, "*1\r\n$4\r\nPING\r\n")
		say(far, wire.Pong)
		r.servers <- far
	}()
	return near, nil
}

func say(to net.Conn, text string) { _, _ = io.WriteString(to, text) }

func hears(t *testing.T, from net.Conn, want string) {
	t.Helper()
	_ = from.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Errorf("got %.100q (%v), want %.100q", got[:n], err, want)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// look calls f on the loop, where it may use what only the loop uses.
func (r *rig) look(f func()) {
	r.t.Helper()
	done := make(chan struct{})
	r.loop.Do(func() { defer close(done); f() })
	await(r.t, "the loop's answer", done)
}

// stops tells whether nothing is read from a connection because of slow clients.
func (r *rig) stops(c *Conn) (stops bool) {
	r.look(func() { stops = len(c.full) > 0 })
	return stops
}

// member makes a member of the connection with this index.
func (r *rig) member(index int) *fakeMember {
	r.t.Helper()
	near, far := proxytest.Pair(r.t)
	sock, err := r.loop.Adopt(near, proxytest.Deaf{})
	if err != nil {
		r.t.Fatal(err)
	}
	owner := &fakeOwner{client: sock}
	m := &fakeMember{Member: NewMember(Options{Owner: owner, Pool: r.Pool}), t: r.t, client: far, owner: owner}
	m.Begin(proxytest.Task(r.t, r.loop), NewWriter(sock))
	m.index = index
	r.t.Cleanup(func() { sock.Close(); m.Close() })
	m.join(r)
	return m
}

func (m *fakeMember) join(r *rig) {
	m.t.Helper()
	if joined, failure := m.Join(Server{Name: "a"}, wire.RESP2, r.dial); !joined || failure != nil {
		m.t.Fatal(failure.Err)
	}
}

func (m *fakeMember) sends(text string, replies int) {
	m.Forward([]byte(text), Expectation{Count: replies})
	m.Send()
}

// isOn tells whether the next command would go over the connection that the member has joined.
func (m *fakeMember) isOn() bool {
	_, isOn := m.MayShare(0, wire.RESP2)
	return isOn
}

// waits tells whether all replies come.
func (m *fakeMember) waits() (ok bool) {
	m.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _, ok = m.Wait() }()
	await(m.t, "Wait's end", done)
	return ok
}

// A reply that came before the connection ended reaches the client, although its session has sent
// another command meanwhile. Then the member fails.
func TestCommandAfterTheEnd(t *testing.T) {
	r := newRig(t)
	m := r.member(0)
	server := <-r.servers
	m.sends("a", 1)
	hears(t, server, "a")
	say(server, "+a\r\n")
	_ = server.Close()
	eventually(t, "the connection has ended", func() bool { return m.conn.Load().over.Load() })
	if m.Failed() {
		t.Error("a member that waits for nothing has failed")
	}
	m.sends("b", 1)
	if m.waits() || !m.Failed() {
		t.Error("the command after the end is said to be answered")
	}
	m.owner.client.Close() // as the session does
	if got, _ := io.ReadAll(m.client); string(got) != "+a\r\n" {
		t.Errorf("the client gets %q", got)
	}
}

// All who need a connection at the same time get one, or the same error.
func TestDialOnce(t *testing.T) {
	r := newRig(t)
	r.down.Store(true)
	m := NewMember(Options{Owner: &fakeOwner{}, Pool: r.Pool})
	m.index = 0
	m.Begin(proxytest.Task(t, r.loop), nil)
	defer m.Close()
	for range 2 {
		if _, failure := m.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure == nil || failure.Reply != wire.ErrUpstreamDown {
			t.Fatalf("%+v", failure)
		}
	}
	r.down.Store(false)
	joined := make(chan *Conn, 20)
	for range cap(joined) {
		go func() {
			c, _ := r.get(laneKey{Server: Server{Name: "a"}}, r.dial)
			joined <- c
		}()
	}
	first := <-joined
	for range cap(joined) - 1 {
		if c := <-joined; c != first || c == nil {
			t.Error("another connection")
		}
	}
	if joined, _ := m.Join(Server{Name: "c"}, wire.RESP2, nil); joined {
		t.Error("a connection is joined that is not there")
	}
	if joined, _ := m.Join(Server{Name: "a"}, wire.RESP2, nil); !joined || m.conn.Load() != first {
		t.Error("a connection that is there is not joined without a dial")
	}
	if joined, _ := m.Join(Server{Name: "b"}, wire.RESP2, r.dial); !joined || m.conn.Load() == first {
		t.Error("two servers share a connection")
	}
}

// A defect in what the watch or the writer calls ends the connection, and not the process.
func TestAPanicEndsOneConnection(t *testing.T) {
	r := newRig(t)
	slow, other := r.member(0), r.member(0)
	slow.owner.defect = true
	server := <-r.servers
	slow.sends("slow", 1)
	other.sends("other", 1)
	hears(t, server, "slowother")
	go say(server, fmt.Sprintf("$%d\r\n%s", 64<<20, strings.Repeat("x", 64<<20)))
	c := slow.conn.Load()
	eventually(t, "the connection has ended", c.over.Load)
	if r.wrong.Load() == nil {
		t.Error("the owner is not told")
	}

	other.join(r)
	<-r.servers
	c = other.conn.Load()
	r.look(func() { // the watch's next look panics
		c.full, c.delay = []*Member{nil}, mostDelay
		c.queue.add(other.Member, &Expectation{Kind: Switch})
	})
	eventually(t, "the next connection has ended", c.over.Load)
}

// A defect between counting the last reply and giving it fails its member.
func TestAPanicFailsTheMemberOfTheLastReply(t *testing.T) {
	c, m := &Conn{}, quiet(1)[0]
	m.conn.Store(c)
	m.pending.Store(1)
	c.to = m
	if failed := c.unanswered(); len(failed) != 1 || failed[0] != m {
		t.Errorf("failed: %v", failed)
	}
}
