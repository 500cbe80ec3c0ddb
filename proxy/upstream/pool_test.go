package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// A fakeOwner counts what it is told, and ends a client that does not read.
type fakeOwner struct {
	client               *conn.Socket
	broken, left, unread atomic.Int32
	defect               bool // Unread panics
}

func (o *fakeOwner) Confirmed(wire.Confirmation) {}
func (o *fakeOwner) OutOfSync(error)             {}
func (o *fakeOwner) Panicked(any)                {}
func (o *fakeOwner) Broken()                     { o.broken.Add(1) }
func (o *fakeOwner) ClientLeft()                 { o.left.Add(1) }
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
	limit   atomic.Int64 // of the memory for what is put aside
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, servers: make(chan net.Conn, 100), loop: proxytest.Loop(t)}
	r.limit.Store(1 << 30)
	r.Pool = NewPool(&conn.Clock{}, conn.NewBudget(r.limit.Load), r.loop, func(err error) { r.wrong.Store(&err) })
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
	sock, err := conn.Adopt(near, r.loop, nil, r.clock, proxytest.Deaf{})
	if err != nil {
		r.t.Fatal(err)
	}
	owner := &fakeOwner{client: sock}
	m := &fakeMember{Member: NewMember(Options{Owner: owner, Pool: r.Pool, Waiting: func(wait func()) { wait() }}), t: r.t, client: far, owner: owner}
	m.Begin(proxytest.Task(r.t, r.loop), conn.NewWriter(sock))
	m.index = index
	r.t.Cleanup(func() { sock.Close(); m.Close() })
	m.join(r)
	return m
}

func (m *fakeMember) join(r *rig) {
	m.t.Helper()
	if failure := m.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure != nil {
		m.t.Fatal(failure.Err)
	}
}

func (m *fakeMember) sends(text string, replies int) {
	m.Expect(Expectation{Count: replies})
	m.Write([]byte(text))
}

// waits tells whether all replies come.
func (m *fakeMember) waits() (ok bool) {
	m.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _, ok = m.Wait() }()
	await(m.t, "Wait's end", done)
	return ok
}

func TestRepliesGoToTheirMembers(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	a.sends("a1a2", 2)
	b.sends("b1", 1)
	a.Expect(Expectation{Count: 1, To: ToNobody})
	a.Expect(Expectation{Count: 1})
	a.Write([]byte("a3a4"))
	hears(t, server, "a1a2b1a3a4")
	stream := "+a1\r\n*2\r\n$2\r\na2\r\n:2\r\n$2\r\nb1\r\n+a3\r\n>1\r\n+push\r\n-a4\r\n"
	for _, piece := range strings.SplitAfter(stream, "") { // byte by byte
		say(server, piece)
	}
	hears(t, a.client, "+a1\r\n*2\r\n$2\r\na2\r\n:2\r\n-a4\r\n")
	hears(t, b.client, "$2\r\nb1\r\n")
	if !a.waits() || !b.waits() {
		t.Error("replies are missing")
	}
	if open, members := r.Counts(); open != 1 || members != 2 {
		t.Errorf("%d connections, %d members", open, members)
	}
}

// A broken connection fails the members that wait for replies, and no others.
func TestBrokenInsideAValue(t *testing.T) {
	r := newRig(t)
	a, b, c := r.member(0), r.member(0), r.member(0)
	server := <-r.servers
	c.sends("c", 1)
	say(server, "+c\r\n")
	hears(t, c.client, "+c\r\n")
	if !c.waits() {
		t.Fatal("the reply is missing")
	}
	a.sends("a", 1)
	b.sends("b", 1)
	hears(t, server, "cab")
	say(server, "$5\r\nab")
	hears(t, a.client, "$5\r\nab")
	_ = server.Close()
	if a.waits() || b.waits() {
		t.Error("a missing reply is said to have come")
	}
	eventually(t, "both are told", func() bool { return a.owner.broken.Load() == 1 && b.owner.broken.Load() == 1 })
	if c.Failed() || c.owner.broken.Load() != 0 {
		t.Error("a member without pending replies has failed")
	}
	if c.On(Server{Name: "a"}, wire.RESP2) {
		t.Error("the broken connection is still used")
	}
	c.join(r)
	server = <-r.servers
	c.sends("again", 1)
	hears(t, server, "again")
	say(server, "+OK\r\n")
	hears(t, c.client, "+OK\r\n")
}

// A reply that answers no command reaches nobody, and ends the connection.
func TestHostileServer(t *testing.T) {
	for stream, want := range map[string]string{
		"+OK\r\n+more\r\n": "+OK\r\n",
		"?":                string(wire.ErrUpstreamReply),
		"+OK":              "+OK",
		"$-7\r\n":          string(wire.ErrUpstreamReply),
		"*1000000000\r\n":  "",
		"+OK\r\n\x00":      "+OK\r\n",
		"$3\r\nabcd\r\n+x": "", // cut somewhere inside
	} {
		r := newRig(t)
		a, b := r.member(0), r.member(0)
		server := <-r.servers
		a.sends("a", 1)
		hears(t, server, "a")
		say(server, stream)
		_ = server.(*net.TCPConn).CloseWrite()
		eventually(t, "the connection has ended, and the client has what came", func() bool { return a.conn.Load().over.Load() })
		if b.Failed() {
			t.Errorf("%q: a member that waits for nothing has failed", stream)
		}
		a.owner.client.Close()
		got, _ := io.ReadAll(a.client)
		if !strings.HasPrefix(string(got), want) || !strings.HasPrefix(stream, string(got)) && string(got) != string(wire.ErrUpstreamReply) {
			t.Errorf("%q: the client gets %q", stream, got)
		}
		b.owner.client.Close()
		if got, _ := io.ReadAll(b.client); len(got) > 0 {
			t.Errorf("%q: another client gets %q", stream, got)
		}
	}
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

// A client that does not read delays the others until the watch ends it.
func TestSlowClientIsEnded(t *testing.T) {
	r := newRig(t)
	slow, other := r.member(0), r.member(0)
	server := <-r.servers
	slow.sends("slow", 1)
	other.sends("other", 1)
	hears(t, server, "slowother")
	const size = 64 << 20 // more than all buffers of the kernel
	go func() {
		say(server, fmt.Sprintf("$%d\r\n", size))
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range size / len(piece) {
			_, _ = server.Write(piece)
		}
		say(server, "\r\n+other\r\n")
	}()
	hears(t, other.client, "+other\r\n")
	if slow.owner.unread.Load() != 1 || !slow.Failed() || other.owner.unread.Load() != 0 {
		t.Errorf("slow: %d times, failed %v; other: %d times", slow.owner.unread.Load(), slow.Failed(), other.owner.unread.Load())
	}
}

// While nobody waits behind it, a client may take its time. What waits for it is bounded.
func TestSlowClientAloneIsKept(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test looks itself
	slow := r.member(0)
	server := <-r.servers
	slow.sends("slow", 1)
	const size = 32 << 20
	go say(server, fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size)))
	c := slow.conn.Load()
	eventually(t, "reading has stopped for the client", func() bool { return r.stops(c) })
	r.look(func() {
		for range 3 * looksToEnd {
			c.countDelay()
		}
		if waiting := slow.Member.client.Waiting(); waiting > 128<<10 {
			t.Errorf("%d bytes wait for the client", waiting)
		}
	})
	if slow.owner.unread.Load() > 0 || !slow.IsSlow() {
		t.Errorf("it is ended %d times; it is slow: %v", slow.owner.unread.Load(), slow.IsSlow())
	}
	hears(t, slow.client, fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size)))
}

// quiet makes members that are told nothing.
func quiet(n int) (members []*Member) {
	for range n {
		members = append(members, &Member{Options: Options{Owner: nobody{}}})
	}
	return members
}

// However much a client reads, it is not ended while it reads fast.
func TestFastReaderIsKept(t *testing.T) {
	c, members := &Conn{}, quiet(2)
	fast, other := members[0], members[1]
	c.full, c.turn = []*Member{fast}, turn{of: other}
	for range 3 * looksToEnd {
		c.taken += readsFast
		if c.countDelay(); fast.gone.Load() {
			t.Fatal("it is ended")
		}
	}
	for range looksToEnd - 1 {
		c.taken += readsFast - 1
		if c.countDelay(); fast.gone.Load() {
			t.Fatal("it is ended too early")
		}
	}
	if c.countDelay(); !fast.gone.Load() || other.gone.Load() {
		t.Error("it is not ended although it reads slowly")
	}
}

// looksToEnd is the number of looks after which clients that delay others are ended.
const looksToEnd = int(mostDelay / watchEvery)

// However many clients do not read, others wait for them a second, not a second for each: the
// delays add up, and at their end all clients that are full are ended together. After it the next
// are ended at once, until nobody has delayed anybody for a while.
func TestSlowClientsAreEndedTogether(t *testing.T) {
	c, other := &Conn{}, quiet(1)[0]
	c.queue.add(turn{of: other})
	// stop stops reading for so many clients until the watch has looked so often. It returns how many
	// of them are ended.
	stop := func(looks, clients int) (ended int) {
		c.full = quiet(clients)
		count := func() (n int) {
			for _, m := range c.full {
				if m.gone.Load() {
					n++
				}
			}
			return n
		}
		c.endSlow() // as after each read
		for look := 1; look <= looks && count() == 0; look++ {
			if c.countDelay(); count() > 0 && look < looks {
				t.Fatal("they are ended too early")
			}
		}
		ended, c.full = count(), nil
		return ended
	}
	if stop(looksToEnd/2, 1) > 0 {
		t.Fatal("the first is ended too early")
	}
	if ended := stop(looksToEnd-looksToEnd/2, 2); ended != 2 {
		t.Errorf("after the second in which others waited %d of two are ended", ended)
	}
	for range 2 {
		if stop(0, 1) != 1 {
			t.Error("the next is not ended at once")
		}
	}
	for range 2 {
		c.countDelay()
	}
	if stop(1, 1) != 1 {
		t.Error("others wait once more for longer than a look")
	}
	for range (looksToEnd + 1) * delayEnds {
		c.countDelay()
	}
	if stop(looksToEnd, 1) != 1 {
		t.Error("it is not ended")
	}
	c.full = append(quiet(1), other)
	if c.endSlow(); other.gone.Load() {
		t.Error("clients are ended although nobody else waits")
	}
}

// A client that has gone costs the others nothing, and its replies go nowhere.
func TestMemberThatLeaves(t *testing.T) {
	r := newRig(t)
	gone, other := r.member(0), r.member(0)
	server := <-r.servers
	gone.sends("gone", 2)
	other.sends("other", 1)
	hears(t, server, "goneother")
	gone.owner.client.Close()
	gone.Abandon()
	if gone.waits() {
		t.Error("a reply that did not come is said to have come")
	}
	say(server, "+1\r\n+2\r\n+other\r\n")
	hears(t, other.client, "+other\r\n")
	if gone.owner.left.Load() != 0 {
		t.Error("its owner is told that the client has left")
	}
}

// A client that sends no more gets what comes soon. It does not wait for a silent server.
func TestMemberThatSendsNoMore(t *testing.T) {
	r := newRig(t)
	patient, leaves := r.member(0), r.member(0)
	server := <-r.servers
	leaves.sends("a", 1)
	leaves.abandonAfter(time.Millisecond)
	if leaves.waits() {
		t.Error("a reply that did not come is said to have come")
	}
	patient.sends("b", 1)
	patient.abandonAfter(patience)
	say(server, "+a\r\n+b\r\n")
	hears(t, patient.client, "+b\r\n")
	if !patient.waits() {
		t.Error("a reply that came is said to be missing")
	}
}

func TestWriteWaitsForTheServer(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	done := make(chan struct{})
	go func() { // the server reads nothing
		defer close(done)
		for range 100 {
			a.sends(strings.Repeat("x", 1<<20), 1)
		}
	}()
	c := b.conn.Load()
	eventually(t, "much waits", func() bool { return c.sock.Waiting() > mostUnsent })
	select {
	case <-done:
		t.Fatal("100 MB are buffered")
	default:
	}
	_ = server.Close()
	<-done
	if !a.Failed() || b.Failed() {
		t.Errorf("failed: %v, %v", a.Failed(), b.Failed())
	}
}

// All who need a connection at the same time get one, or the same error.
func TestDialOnce(t *testing.T) {
	r := newRig(t)
	r.down.Store(true)
	m := NewMember(Options{Owner: &fakeOwner{}, Pool: r.Pool})
	m.Begin(proxytest.Task(t, r.loop), nil)
	defer m.Close()
	for range 2 {
		if failure := m.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure == nil || failure.Reply != wire.ErrUpstreamDown {
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
	if m.Join(Server{Name: "b"}, wire.RESP2, r.dial) != nil || m.conn.Load() == first {
		t.Error("two servers share a connection")
	}
}

// The reader has begun with the reply, so no turn waits, and yet the connection is in use.
func TestAConnectionThatOwesTheRestOfAReplyIsNotIdle(t *testing.T) {
	r := newRig(t)
	a := r.member(0)
	server := <-r.servers
	c := a.conn.Load()
	idle := func() (is bool) {
		r.look(func() { is = c.isIdle() })
		return is
	}
	if !idle() {
		t.Error("a new connection is not idle")
	}
	a.sends("a", 2)
	say(server, "+1\r\n$3\r\nab")
	hears(t, a.client, "+1\r\n$3\r\nab")
	if idle() {
		t.Error("it passes for idle")
	}
	say(server, "c\r\n")
	eventually(t, "it is idle", idle)
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
	r.look(func() {
		defer c.catch()
		panic("a defect")
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

// A server that has become a replica is left. Replies that are still missing come from it.
func TestReadOnlyServerIsLeft(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test looks itself
	silent := r.member(1)
	<-r.servers
	a, b := r.member(0), r.member(0)
	replica := <-r.servers
	c := a.conn.Load()
	isOn := func(m *fakeMember) bool { return m.On(Server{Name: "a"}, wire.RESP2) }
	refuse := func() {
		a.sends("write", 1)
		say(replica, "-READONLY You can't write against a read only replica.\r\n")
		hears(t, a.client, "-READONLY You can't write against a read only replica.\r\n")
		a.waits()
	}
	leftAt := func(at time.Time) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.left = at
	}
	leftAt(time.Now().Add(time.Hour))
	if refuse(); !isOn(a) || !isOn(silent) {
		t.Error("a server is left a second time at once, so each command would dial")
	}
	leftAt(time.Time{})
	a.sends("get", 1)
	say(replica, "$9\r\n-READONLY\r\n")
	hears(t, a.client, "$9\r\n-READONLY\r\n")
	if a.waits(); !isOn(a) {
		t.Error("a value makes a client leave its server")
	}
	b.sends("slow", 1)
	say(replica, "+slow\r\n")
	if refuse(); isOn(a) || isOn(silent) {
		t.Fatal("the replica is still used")
	}
	b.sends("late", 1) // b had chosen the connection before
	a.join(r)
	master := <-r.servers
	a.sends("write", 1)
	say(master, "+OK\r\n")
	hears(t, a.client, "+OK\r\n")
	for range 2 * staleLooks {
		r.look(func() { c.look(Server{Name: "a"}) })
	}
	leftAt(time.Time{})
	say(replica, "-READONLY late\r\n")
	hears(t, b.client, "+slow\r\n-READONLY late\r\n")
	if !isOn(a) {
		t.Error("a late reply of the replica makes members leave the master")
	}
	if open, _ := r.Counts(); open != 3 {
		t.Errorf("%d connections", open)
	}
	b.waits()
	r.look(func() { c.look(Server{Name: "a"}) })
	eventually(t, "the connection to the replica is closed", c.over.Load)
}

// A connection that nobody uses is closed, but not at once: a session may have just chosen it.
func TestUnusedConnectionIsClosed(t *testing.T) {
	r := newRig(t)
	r.watched = true // the test looks itself
	a := r.member(0)
	server := <-r.servers
	c := a.conn.Load()
	a.sends("a", 1)
	r.clock.Advance(int64(2 * unusedAfter))
	for range 2 * staleLooks {
		r.look(func() { c.look(Server{Name: "a"}) })
	}
	if !a.On(Server{Name: "a"}, wire.RESP2) {
		t.Error("a connection that owes a reply is left")
	}
	say(server, "+a\r\n")
	hears(t, a.client, "+a\r\n")
	a.waits()
	r.clock.Advance(int64(4 * unusedAfter))
	r.look(func() { c.look(Server{Name: "a"}) })
	if a.On(Server{Name: "a"}, wire.RESP2) {
		t.Error("it may still be chosen")
	}
	a.sends("late", 1)
	say(server, "+late\r\n")
	hears(t, a.client, "+late\r\n")
	a.waits()
	if c.over.Load() {
		t.Error("it was closed at once")
	}
	for range staleLooks {
		r.look(func() { c.look(Server{Name: "a"}) })
	}
	eventually(t, "it is closed", c.over.Load)
}

func TestClosedPool(t *testing.T) {
	r := newRig(t)
	a := r.member(0)
	<-r.servers
	a.sends("a", 1)
	r.Close()
	if a.waits() {
		t.Error("a missing reply is said to have come")
	}
	if failure := a.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure == nil {
		t.Error("a closed pool dials")
	}
}

// A server that remains a replica is left less and less often, and one that becomes a replica later at
// once.
func TestHowOftenAReplicaIsLeft(t *testing.T) {
	p := &Pool{}
	for _, row := range []struct {
		since, pause time.Duration
		leaves       bool
		next         time.Duration
	}{
		{time.Hour, 0, true, leaveEvery},
		{leaveEvery / 2, leaveEvery, false, leaveEvery},
		{leaveEvery * 2, leaveEvery, true, 2 * leaveEvery},
		{leaveEvery * 3 / 2, 2 * leaveEvery, false, 2 * leaveEvery},
		{leaveAtMost, leaveAtMost * 3 / 4, true, leaveAtMost},
		{leaveAtMost * 3 / 2, leaveAtMost, true, leaveAtMost},
		{leaveAtMost * 3, leaveAtMost, true, leaveEvery},
	} {
		c := &Conn{server: Server{Name: "a"}}
		other := &Conn{server: Server{Name: "b"}}
		p.all, p.left, p.pause = []*Conn{c, other}, time.Now().Add(-row.since), row.pause
		p.leave(c.server)
		if c.stale.Load() != row.leaves || p.pause != row.next || other.stale.Load() {
			t.Errorf("%v after the last one, with a pause of %v: left %v, and then a pause of %v", row.since, row.pause, c.stale.Load(), p.pause)
		}
	}
}
