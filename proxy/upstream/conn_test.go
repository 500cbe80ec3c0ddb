package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

const patience = 10 * time.Second

// A recorder records the events of a connection.
type recorder struct {
	mu   sync.Mutex
	text []string
}

func (r *recorder) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, text)
}

func (r *recorder) Confirmed(c wire.Confirmation) {
	r.add("confirmed " + strings.Join(c.Names, ","))
}
func (r *recorder) Unread() { r.add("unread") }
func (r *recorder) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.text, "; ")
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(what + " does not come")
	}
}

// An ownRig is a member's own connection between a client and a server. The test plays both.
type ownRig struct {
	*Member
	server   net.Conn
	requests *bufio.Reader // what the server gets
	got      []string      // of that, the lines of the login
	client   net.Conn
	replies  *bufio.Reader // what the client gets
	events   *recorder
	memory   atomic.Int64 // that is taken
	known    bool
	failure  *Failure
}

// open logs in at a server with these answers. It sends one part for all commands that come
// together.
func open(t *testing.T, login *Login, answers ...string) *ownRig {
	t.Helper()
	r := &ownRig{events: &recorder{}}
	near, far := pair(t)
	inside, outside := pair(t)
	r.server, r.client = far, outside
	r.requests, r.replies = bufio.NewReader(far), bufio.NewReader(outside)
	played := make(chan struct{})
	go func() {
		defer close(played)
		for _, answer := range answers {
			for more := true; more; more = r.requests.Buffered() > 0 {
				line, err := r.requests.ReadString('\n')
				if err != nil {
					return
				}
				r.got = append(r.got, strings.TrimSpace(line))
			}
			r.say(answer)
			if !strings.HasSuffix(answer, "\n") {
				_ = far.Close()
			}
		}
	}()
	dial := func(context.Context) (net.Conn, error) { return near, nil }
	l := proxytest.Loop(t)
	client, err := l.Adopt(inside, proxytest.Deaf{})
	if err != nil {
		t.Fatal(err)
	}
	pool := NewPool(l, func(n int) bool { r.memory.Add(int64(n)); return true }, func(error) { r.events.add("out of sync") })
	r.Member = NewMember(Options{Owner: r.events, Pool: pool, Captures: func() int64 { return 100_000 }})
	r.Begin(proxytest.Task(t, l), NewWriter(client))
	r.known, r.failure = r.Open(context.Background(), dial, login)
	await(t, "the login's end", played)
	if (r.Own() == nil) == (r.failure == nil) {
		t.Fatalf("a connection %v and a failure %v", r.Own(), r.failure)
	}
	t.Cleanup(r.Close)
	return r
}

// pair makes a TCP connection whose ends wait for nothing longer than patience.
func pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	near, far = proxytest.Pair(t)
	for _, c := range []net.Conn{near, far} {
		_ = c.SetDeadline(time.Now().Add(patience))
	}
	return near, far
}

// opened makes a rig that has logged in.
func opened(t *testing.T) *ownRig {
	t.Helper()
	r := open(t, &Login{}, wire.Pong)
	if r.failure != nil {
		t.Fatal(r.failure.Err)
	}
	return r
}

// commands returns the commands of the login.
func (r *ownRig) commands() string {
	var list []string
	for _, line := range r.got {
		switch {
		case line[0] == '*':
			list = append(list, "")
		case line[0] != '$':
			list[len(list)-1] = strings.TrimSpace(list[len(list)-1] + " " + line)
		}
	}
	return strings.Join(list, ",")
}

func (r *ownRig) requested(t *testing.T, want string) { t.Helper(); expect(t, r.requests, want) }
func (r *ownRig) replied(t *testing.T, want string)   { t.Helper(); expect(t, r.replies, want) }

func expect(t *testing.T, from *bufio.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("got %q (%v), want %q", got[:n], err, want)
	}
}

func (r *ownRig) sends(commands []byte, e Expectation) {
	r.Forward(commands, e)
	r.Send()
}

func (r *ownRig) say(text string) { _, _ = io.WriteString(r.server, text) }

// waits calls Wait and reports its results, which must come soon.
func (r *ownRig) waits(t *testing.T) (replies string, ok bool) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var kept []byte
		kept, ok = r.Wait()
		replies = string(kept)
	}()
	await(t, "Wait's end", done)
	return replies, ok
}

func TestRepliesGoWhereTheyAreExpected(t *testing.T) {
	r := opened(t)
	for i, to := range []Destination{ToClient, ToOwner, ToNobody, ToClient} {
		r.Forward([]byte(strings.Fields("four com man ds")[i]), Expectation{To: to, Count: 1})
	}
	r.Send()
	r.requested(t, "fourcommands")
	if r.Drained() {
		t.Error("nothing is said to be pending")
	}
	r.say("+for the client\r\n$5\r\nowner\r\n:1\r\n+again\r\n")
	if replies, ok := r.waits(t); replies != "$5\r\nowner\r\n" || !ok {
		t.Errorf("the owner gets %q, %v", replies, ok)
	}
	r.replied(t, "+for the client\r\n+again\r\n")
	if replies, ok := r.waits(t); replies != "" || !ok || !r.Drained() {
		t.Errorf("then the owner gets %q, %v", replies, ok)
	}
}

// Wait never reports a reply that did not come. A value that began before the end goes
// to the client.
func TestTheEndIsNoAnswer(t *testing.T) {
	r := opened(t)
	r.sends([]byte("x"), Expectation{Count: 2})
	r.say("+one\r\n$10\r\nhalf")
	_ = r.server.Close()
	if _, ok := r.waits(t); ok {
		t.Error("all is said to be answered")
	}
	r.replied(t, "+one\r\n$10\r\nhalf")
	eventually(t, "the member has failed", r.Failed)
	if whole := r.Finish(); whole || !r.Failed() || r.events.told() != "" {
		t.Errorf("whole %v, ended %v, and it tells %q", whole, r.Failed(), r.events.told())
	}
}

func TestEventsOfAConnection(t *testing.T) {
	confirmation := "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
	for name, row := range map[string]struct {
		expected []Expectation
		stream   string
		told     string
		replied  string
	}{
		"a confirmation":  {[]Expectation{{Kind: Confirmations, Adds: true, Count: 1, Names: []string{"a"}}}, confirmation, "confirmed a", confirmation},
		"all are refused": {[]Expectation{{Kind: Confirmations, Adds: true, Count: 2, Names: []string{"a", "b"}}}, "-NOPERM\r\n", "confirmed a,b", "-NOPERM\r\n"},
		"nobody asked":    {nil, "+OK\r\n", "out of sync", ""},
		"no RESP":         {[]Expectation{{Count: 1}}, "what?\r\n", "out of sync", string(wire.ErrUpstreamReply)},
		"the end":         {nil, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := opened(t)
			for _, e := range row.expected {
				r.sends([]byte("x"), e)
			}
			r.say(row.stream)
			r.replied(t, row.replied)
			if !strings.HasPrefix(row.told, "out") {
				_ = r.server.Close()
			}
			eventually(t, "the member has failed", r.Failed)
			if r.events.told() != row.told {
				t.Errorf("it tells %q, want %q", r.events.told(), row.told)
			}
		})
	}
}

// A client that accepts no more bytes gets nothing more, and its writing side is unlocked. Its session leaves.
func TestClientLeavesInsideAReply(t *testing.T) {
	r := opened(t)
	_ = r.client.Close()
	r.sends([]byte("x"), Expectation{Count: 1})
	go func() {
		for text := "$100000000\r\n"; ; text = strings.Repeat("x", 100_000) {
			if _, err := io.WriteString(r.server, text); err != nil {
				return
			}
		}
	}()
	eventually(t, "the client is given up", r.gone.Load)
	r.Member.client.Lock()
	defer r.Member.client.Unlock()
	if r.Member.client.pass([]byte("x"), false) == nil {
		t.Error("the client has not left")
	}
}

// A long command is sent as it is, so Send returns when nobody uses its bytes any more. The owner can know that it
// waits, because the client may leave meanwhile.
func TestLongWriteKeepsItsBytes(t *testing.T) {
	r := opened(t)
	long := bytes.Repeat([]byte("x"), 1<<20)
	read := make(chan string)
	go func() {
		got := make([]byte, len(long)+1)
		_, _ = io.ReadFull(r.requests, got)
		read <- string(got)
	}()
	if !r.Forward(long, Expectation{Count: 1}) || !r.Gathers() || !r.MustWait() {
		t.Error("a long command may be kept, or is said not to wait")
	}
	r.Send()
	clear(long)
	if r.Forward([]byte("y"), Expectation{Count: 1}) || r.MustWait() {
		t.Error("a short command may not be kept, or is said to wait")
	}
	r.Send()
	if got := <-read; got != strings.Repeat("x", 1<<20)+"y" {
		t.Errorf("%d bytes come, the first of which is %q", len(got), got[0])
	}
	written := make(chan struct{})
	go func() { // the server reads no more
		defer close(written)
		r.sends(make([]byte, 64<<20), Expectation{Count: 1})
	}()
	eventually(t, "much waits", func() bool { return r.Own().sock.Waiting() > 0 })
	r.Abandon()
	await(t, "Write's end", written)
	eventually(t, "the member has failed", r.Failed) // the loop says so after it has woken the writer
}

// Finish waits for the remaining replies of the upstream. Close ends one that is silent
// for long.
func TestFinishHearsTheRest(t *testing.T) {
	r := opened(t)
	r.sends([]byte("x"), Expectation{Count: 1})
	go func() {
		_, _ = io.ReadAll(r.requests) // the end of the commands
		r.say("+last\r\n")
		_ = r.server.Close()
	}()
	if !r.Finish() {
		t.Error("the last value is not whole")
	}
	r.replied(t, "+last\r\n")
}

func TestWhatIsKeptIsPaidFor(t *testing.T) {
	r := opened(t)
	long := "$50000\r\n" + strings.Repeat("x", 50_000) + "\r\n"
	r.sends([]byte("x"), Expectation{To: ToOwner, Count: 1})
	r.say(long[:40_000])
	for deadline := time.Now().Add(patience); r.memory.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no memory is taken")
		}
	}
	r.say(long[40_000:])
	if replies, ok := r.waits(t); replies != long || !ok {
		t.Errorf("%d bytes are handed over, %v", len(replies), ok)
	}
	r.sends([]byte("x"), Expectation{To: ToOwner, Count: 2})
	r.say(long + long)
	if replies, ok := r.waits(t); replies != "" || !ok {
		t.Errorf("of too long a reply, %d bytes are handed over, %v", len(replies), ok)
	}
	r.sends([]byte("x"), Expectation{To: ToOwner, Count: 1})
	r.say(long[:40_000])
	r.Close()
	if n := r.memory.Load(); n != 0 {
		t.Errorf("%d bytes are still taken", n)
	}
}

func TestUnreachable(t *testing.T) {
	none := errors.New("no route")
	dial := func(context.Context) (net.Conn, error) { return nil, none }
	m := NewMember(Options{Pool: new(Pool)})
	if _, failure := m.Open(context.Background(), dial, &Login{}); m.Own() != nil || failure.Reply != wire.ErrUpstreamDown || failure.Err != none || failure.Rejected {
		t.Errorf("%v, %+v", m.Own(), failure)
	}
}
