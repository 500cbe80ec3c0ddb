package shared

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

const patience = 30 * time.Second

// A fakeOwner counts what it is told, and ends a client that does not read.
type fakeOwner struct {
	client               *conn.Socket
	broken, left, unread atomic.Int32
	defect               bool // Unread panics
}

func (o *fakeOwner) Broken()     { o.broken.Add(1) }
func (o *fakeOwner) ClientLeft() { o.left.Add(1) }
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
		expect(r.t, far, "*1\r\n$4\r\nPING\r\n")
		say(far, wire.Pong)
		r.servers <- far
	}()
	return near, nil
}

func say(to net.Conn, text string) { _, _ = io.WriteString(to, text) }

func expect(t *testing.T, from net.Conn, want string) {
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

func await(t *testing.T, otherwise string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(otherwise)
	}
}

// member makes a member of the connection with this index.
func (r *rig) member(index int) *fakeMember {
	r.t.Helper()
	near, far := proxytest.Pair(r.t)
	owner := &fakeOwner{client: conn.NewSocket(near, &conn.Clock{})}
	if !owner.client.Attach(r.loop, nil, proxytest.Deaf{}) {
		r.t.Fatal("the client cannot be attached")
	}
	m := &fakeMember{Member: r.NewMember(conn.NewWriter(owner.client), owner, nil), t: r.t, client: far, owner: owner}
	m.index = index
	r.t.Cleanup(func() { _ = near.Close(); m.Close() })
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
	m.Expect(upstream.Expectation{Count: replies})
	m.Write([]byte(text))
}

func TestRepliesGoToTheirMembers(t *testing.T) {
	r := newRig(t)
	a, b := r.member(0), r.member(0)
	server := <-r.servers
	a.sends("a1a2", 2)
	b.sends("b1", 1)
	a.Expect(upstream.Expectation{Count: 1, To: upstream.ToNobody})
	a.Expect(upstream.Expectation{Count: 1})
	a.Write([]byte("a3a4"))
	expect(t, server, "a1a2b1a3a4")
	stream := "+a1\r\n*2\r\n$2\r\na2\r\n:2\r\n$2\r\nb1\r\n+a3\r\n>1\r\n+push\r\n-a4\r\n"
	for _, piece := range strings.SplitAfter(stream, "") { // byte by byte
		say(server, piece)
	}
	expect(t, a.client, "+a1\r\n*2\r\n$2\r\na2\r\n:2\r\n-a4\r\n")
	expect(t, b.client, "$2\r\nb1\r\n")
	if !a.Wait(patience) || !b.Wait(patience) {
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
	expect(t, c.client, "+c\r\n")
	if !c.Wait(patience) {
		t.Fatal("the reply is missing")
	}
	a.sends("a", 1)
	b.sends("b", 1)
	expect(t, server, "cab")
	say(server, "$5\r\nab")
	expect(t, a.client, "$5\r\nab")
	_ = server.Close()
	if a.Wait(patience) || b.Wait(patience) {
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
	expect(t, server, "again")
	say(server, "+OK\r\n")
	expect(t, c.client, "+OK\r\n")
}

// A reply that answers no command reaches nobody, and ends the connection.
func TestHostileServer(t *testing.T) {
	for stream, want := range map[string]string{
		"+OK\r\n+more\r\n": "+OK\r\n",
		"?":                "",
		"+OK":              "+OK",
		"$-7\r\n":          "",
		"*1000000000\r\n":  "",
		"+OK\r\n\x00":      "+OK\r\n",
		"$3\r\nabcd\r\n+x": "", // cut somewhere inside
	} {
		r := newRig(t)
		a, b := r.member(0), r.member(0)
		server := <-r.servers
		a.sends("a", 1)
		expect(t, server, "a")
		say(server, stream)
		_ = server.(*net.TCPConn).CloseWrite()
		eventually(t, "the connection has ended, and the client has what came", func() bool { return a.conn.Load().over.Load() && !a.behind.Load() })
		if b.Failed() {
			t.Errorf("%q: a member that waits for nothing has failed", stream)
		}
		_ = a.owner.client.Close()
		got, _ := io.ReadAll(a.client)
		if !strings.HasPrefix(string(got), want) || !strings.HasPrefix(stream, string(got)) {
			t.Errorf("%q: the client gets %q", stream, got)
		}
		_ = b.owner.client.Close()
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
	expect(t, server, "a")
	m.Member.client.Lock() // somebody else writes to the client
	say(server, "+a\r\n")
	_ = server.Close()
	eventually(t, "the connection has ended", func() bool { return m.conn.Load().over.Load() })
	m.sends("b", 1)
	if m.Failed() {
		t.Error("the member has failed, and its client does not have what came")
	}
	m.Member.client.Unlock()
	if m.Wait(patience) || !m.Failed() {
		t.Error("the command after the end is said to be answered")
	}
	_ = m.owner.client.Close() // as the session does
	if got, _ := io.ReadAll(m.client); string(got) != "+a\r\n" {
		t.Errorf("the client gets %q", got)
	}
	eventually(t, "the owner is told once", func() bool { return m.owner.broken.Load() == 1 })
}

// A client that does not read delays the others until the watch ends it.
func TestSlowClientIsEnded(t *testing.T) {
	r := newRig(t)
	slow, other := r.member(0), r.member(0)
	server := <-r.servers
	slow.sends("slow", 1)
	other.sends("other", 1)
	expect(t, server, "slowother")
	const size = 64 << 20 // more than all buffers of the kernel
	go func() {
		say(server, fmt.Sprintf("$%d\r\n", size))
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range size / len(piece) {
			_, _ = server.Write(piece)
		}
		say(server, "\r\n+other\r\n")
	}()
	expect(t, other.client, "+other\r\n")
	if slow.owner.unread.Load() != 1 || !slow.Failed() || other.owner.unread.Load() != 0 {
		t.Errorf("slow: %d times, failed %v; other: %d times", slow.owner.unread.Load(), slow.Failed(), other.owner.unread.Load())
	}
}

// While nobody waits behind it, a client may take its time.
func TestSlowClientAloneIsKept(t *testing.T) {
	r := newRig(t)
	slow := r.member(0)
	server := <-r.servers
	slow.sends("slow", 1)
	const size = 32 << 20
	go say(server, fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size)))
	c := slow.conn.Load()
	eventually(t, "reading has stopped for the client", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.full) > 0
	})
	for range 3 * looksToEnd {
		if c.unread() != nil {
			t.Fatal("it is ended")
		}
	}
	expect(t, slow.client, fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat("x", size)))
}

// However much a client reads, it is not ended while it reads fast.
func TestFastReaderIsKept(t *testing.T) {
	c := newConnection(&Pool{}, laneKey{}, nil)
	fast, other := &Member{}, &Member{}
	c.full, c.queue = []*Member{fast}, []turn{{of: other, count: 1}}
	for range 3 * looksToEnd {
		c.taken += readsFast
		if c.unread() != nil {
			t.Fatal("it is ended")
		}
	}
	for range looksToEnd - 1 {
		c.taken += readsFast - 1
		if c.unread() != nil {
			t.Fatal("it is ended too early")
		}
	}
	if !slices.Equal(c.unread(), []*Member{fast}) {
		t.Error("it is not ended although it reads slowly")
	}
}

// looksToEnd is the number of looks after which clients that delay others are ended.
const looksToEnd = int(mostDelay / watchEvery)

// However many clients do not read, others wait for them a second, not a second for each: the
// delays add up, and at their end all clients that are full are ended together. After it the next
// are ended at once, until nobody has delayed anybody for a while.
func TestSlowClientsAreEndedTogether(t *testing.T) {
	c := newConnection(&Pool{}, laneKey{}, nil)
	first, second, third, other := &Member{}, &Member{}, &Member{}, &Member{}
	c.queue = []turn{{of: other, count: 1}}
	stop := func(looks int, full ...*Member) (ended []*Member) {
		c.full = full
		if ended = c.fed(); ended != nil {
			return ended
		}
		for range looks - 1 {
			if c.unread() != nil {
				t.Fatal("they are ended too early")
			}
		}
		return c.unread()
	}
	if stop(looksToEnd/2, first) != nil {
		t.Fatal("the first is ended too early")
	}
	if ended := stop(looksToEnd-looksToEnd/2, second, third); !slices.Equal(ended, []*Member{second, third}) {
		t.Errorf("after the second in which others waited %d of two are ended", len(ended))
	}
	for _, m := range []*Member{first, second} {
		if c.full = []*Member{m}; !slices.Equal(c.fed(), c.full) {
			t.Error("the next is not ended at once")
		}
	}
	c.full = nil
	for range 2 {
		_ = c.unread()
	}
	if stop(1, first) == nil {
		t.Error("others wait once more for longer than a look")
	}
	c.full = nil
	for range (looksToEnd + 1) * delayEnds {
		_ = c.unread()
	}
	if stop(looksToEnd, first) == nil {
		t.Error("it is not ended")
	}
	c.full, c.queue[0].of = []*Member{first, other}, first
	if c.fed() != nil {
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
	expect(t, server, "goneother")
	_ = gone.owner.client.Close()
	gone.Member.Abandon()
	if gone.Wait(patience) {
		t.Error("a reply that did not come is said to have come")
	}
	say(server, "+1\r\n+2\r\n+other\r\n")
	expect(t, other.client, "+other\r\n")
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
	leaves.AbandonAfter(time.Millisecond)
	if leaves.Wait(0) {
		t.Error("a reply that did not come is said to have come")
	}
	patient.sends("b", 1)
	patient.AbandonAfter(patience)
	say(server, "+a\r\n+b\r\n")
	expect(t, patient.client, "+b\r\n")
	if !patient.Wait(0) {
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
	eventually(t, "the buffer is full", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.out) > mostWaiting
	})
	select {
	case <-done:
		t.Fatal("100 MB are buffered")
	default:
	}
	{
		tried := make(chan struct{})
		r.loop.Go(func(task *loop.Task) (rests bool) {
			defer close(tried)
			onLoop := &Member{task: task}
			for { // until the system's buffers are full, too
				if _, mustLeave := c.enter(onLoop, nil); mustLeave {
					return false
				}
				task.Yield()
			}
		})
		await(t, "a task on the loop is not told to leave it", tried)
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
	near, _ := proxytest.Pair(t)
	m := r.NewMember(conn.NewWriter(conn.NewSocket(near, &conn.Clock{})), &fakeOwner{}, nil)
	defer m.Close()
	for range 2 {
		if failure := m.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure == nil || failure.Reply != wire.ErrUpstreamDown {
			t.Fatalf("%+v", failure)
		}
	}
	r.down.Store(false)
	joined := make(chan *connection, 20)
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
	if !c.isIdle() {
		t.Error("a new connection is not idle")
	}
	a.sends("a", 2)
	say(server, "+1\r\n$3\r\nab")
	expect(t, a.client, "+1\r\n$3\r\nab")
	if c.isIdle() {
		t.Error("it passes for idle")
	}
	say(server, "c\r\n")
	eventually(t, "it is idle", c.isIdle)
}

// A defect in what the watch or the writer calls ends the connection, and not the process.
func TestAPanicEndsOneConnection(t *testing.T) {
	r := newRig(t)
	slow, other := r.member(0), r.member(0)
	slow.owner.defect = true
	server := <-r.servers
	slow.sends("slow", 1)
	other.sends("other", 1)
	expect(t, server, "slowother")
	go say(server, fmt.Sprintf("$%d\r\n%s", 64<<20, strings.Repeat("x", 64<<20)))
	c := slow.conn.Load()
	eventually(t, "the connection has ended", c.over.Load)
	if r.wrong.Load() == nil {
		t.Error("the owner is not told")
	}

	other.join(r)
	<-r.servers
	c = other.conn.Load()
	func() {
		defer c.catch()
		panic("a defect")
	}()
	eventually(t, "the next connection has ended", c.over.Load)
}

// The connection that writes what was put aside for a member has it until that is done, also if all
// replies have been given already.
func TestAMemberThatIsBehindStaysOnItsConnection(t *testing.T) {
	r := newRig(t)
	m := r.member(0)
	<-r.servers
	before := m.conn.Load()
	m.behind.Store(true) // as between answered and takeAside
	other := r.member(0)
	server := Server{Name: "b"}
	if failure := other.Join(server, wire.RESP2, r.dial); failure != nil {
		t.Fatal(failure.Err)
	}
	<-r.servers
	if m.TryJoin(server, wire.RESP2) {
		t.Error("it joined another connection at once")
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		_ = m.Join(server, wire.RESP2, r.dial)
	}()
	for range 20 {
		time.Sleep(time.Millisecond)
		if m.conn.Load() != before {
			t.Fatal("it joined another connection while it was behind")
		}
	}
	before.mu.Lock()
	before.caughtUp(m.Member)
	before.mu.Unlock()
	await(t, "it does not join", joined)
	if m.conn.Load() == before || !m.TryJoin(server, wire.RESP2) {
		t.Error("it did not join")
	}
}

// A defect between counting the last reply and giving it fails its member.
func TestAPanicFailsTheMemberOfTheLastReply(t *testing.T) {
	c := newConnection(&Pool{}, laneKey{}, conn.NewSocket(nil, &conn.Clock{}))
	owner := &fakeOwner{}
	m := &Member{owner: owner}
	m.conn.Store(c)
	m.pending.Store(1)
	c.turn = turn{of: m}
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
		expect(t, a.client, "-READONLY You can't write against a read only replica.\r\n")
		a.Wait(patience)
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
	expect(t, a.client, "$9\r\n-READONLY\r\n")
	if a.Wait(patience); !isOn(a) {
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
	expect(t, a.client, "+OK\r\n")
	for range 2 * staleLooks {
		c.look(Server{Name: "a"})
	}
	leftAt(time.Time{})
	say(replica, "-READONLY late\r\n")
	expect(t, b.client, "+slow\r\n-READONLY late\r\n")
	if !isOn(a) {
		t.Error("a late reply of the replica makes members leave the master")
	}
	if open, _ := r.Counts(); open != 3 {
		t.Errorf("%d connections", open)
	}
	b.Wait(patience)
	c.look(Server{Name: "a"})
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
		c.look(Server{Name: "a"})
	}
	if !a.On(Server{Name: "a"}, wire.RESP2) {
		t.Error("a connection that owes a reply is left")
	}
	say(server, "+a\r\n")
	expect(t, a.client, "+a\r\n")
	a.Wait(patience)
	r.clock.Advance(int64(4 * unusedAfter))
	c.look(Server{Name: "a"})
	if a.On(Server{Name: "a"}, wire.RESP2) {
		t.Error("it may still be chosen")
	}
	a.sends("late", 1)
	say(server, "+late\r\n")
	expect(t, a.client, "+late\r\n")
	a.Wait(patience)
	if c.over.Load() {
		t.Error("it was closed at once")
	}
	for range staleLooks {
		c.look(Server{Name: "a"})
	}
	eventually(t, "it is closed", c.over.Load)
}

func TestClosedPool(t *testing.T) {
	r := newRig(t)
	a := r.member(0)
	<-r.servers
	a.sends("a", 1)
	r.Close()
	if a.Wait(patience) {
		t.Error("a missing reply is said to have come")
	}
	if failure := a.Join(Server{Name: "a"}, wire.RESP2, r.dial); failure == nil {
		t.Error("a closed pool dials")
	}
}

// However the stream is cut, each client gets its own replies only.
func FuzzFeed(f *testing.F) {
	f.Add("+1\r\n$2\r\nab\r\n*1\r\n:1\r\n>1\r\n+p\r\n-e\r\n", uint8(3))
	f.Add("+1\r\n?", uint8(1))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		var got [2][2]string
		var wrong [2]error
		for i, step := range []int{len(stream) + 1, int(size) + 1} {
			c := newConnection(&Pool{outOfSync: func(error) {}, memory: unlimited()}, laneKey{}, nil)
			var clients [2]*collector
			var members [2]*Member
			for j := range clients {
				clients[j] = &collector{}
				m := &Member{client: clients[j], drained: make(chan struct{}, 1)}
				members[j] = m
				for range 2 {
					c.queue = append(c.queue, turn{of: m, count: 2})
				}
			}
			c.queue[1], c.queue[2] = c.queue[2], c.queue[1]
			for at := 0; at < len(stream) && wrong[i] == nil; at += step {
				wrong[i] = c.feed([]byte(stream[at:min(at+step, len(stream))]))
			}
			for j, client := range clients {
				c.awaitCaughtUp(members[j])
				got[i][j] = client.String()
			}
		}
		if (wrong[0] == nil) != (wrong[1] == nil) || wrong[0] == nil && got[0] != got[1] {
			t.Errorf("%q: whole %q (%v), in pieces %q (%v)", stream, got[0], wrong[0], got[1], wrong[1])
		}
	})
}

// collector is a client's writing side that keeps what is written to it.
type collector struct {
	sync.Mutex
	bytes.Buffer
}

func (c *collector) IsFull() bool                { return false }
func (c *collector) Append(p []byte) error       { _, _ = c.Buffer.Write(p); return nil }
func (c *collector) Write(p []byte) (int, error) { return c.Buffer.Write(p) }

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
		c := &connection{server: Server{Name: "a"}}
		other := &connection{server: Server{Name: "b"}}
		p.all, p.left, p.pause = []*connection{c, other}, time.Now().Add(-row.since), row.pause
		p.leave(c.server)
		if c.stale.Load() != row.leaves || p.pause != row.next || other.stale.Load() {
			t.Errorf("%v after the last one, with a pause of %v: left %v, and then a pause of %v", row.since, row.pause, c.stale.Load(), p.pause)
		}
	}
}
