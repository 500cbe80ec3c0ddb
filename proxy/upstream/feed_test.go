package upstream

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

func bulkOf(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// nobody ignores all events.
type nobody struct{}

func (nobody) Confirmed(wire.Confirmation) {}
func (nobody) Unread()                     {}

// collector is a client's connection in memory. It keeps what is written to it.
type collector struct {
	net.Conn
	written bytes.Buffer
	loop    *loop.Loop
	*Writer
}

func (c *collector) Write(p []byte) (int, error) { return c.written.Write(p) }
func (c *collector) Take([]byte) (int, error)    { return 0, nil }
func (c *collector) Tell(func())                 {}
func (c *collector) LocalAddr() net.Addr         { return nil }
func (c *collector) RemoteAddr() net.Addr        { return nil }

// got is what the client has got so far.
func (c *collector) got() string {
	for c.loop.Step() {
	}
	return c.written.String()
}

// steps is a loop that runs in got only.
var steps = loop.NewIn(nil, func() {}, slog.New(slog.DiscardHandler))

// testMember makes a member whose client keeps what it gets.
func testMember(captures int64) (*Member, *collector) {
	m := NewMember(Options{Owner: nobody{}, Pool: &Pool{reserve: unlimited}, Captures: func() int64 { return captures }})
	client := &collector{loop: steps}
	sock, err := steps.Adopt(client, proxytest.Deaf{})
	if err != nil {
		panic(err)
	}
	client.Writer = NewWriter(sock)
	m.client = client.Writer
	return m, client
}

func unlimited(int) bool { return true }

// testUpstream makes a member's own Conn without a connection. The test feeds it.
func testUpstream(version wire.Version, captures int64, expected ...Expectation) *fedConn {
	m, client := testMember(captures)
	u := &fedConn{Conn: &Conn{only: m, version: version}, client: client}
	m.conn.Store(u.Conn)
	u.expect(expected...)
	return u
}

type fedConn struct {
	*Conn
	client *collector
}

// expect has the member expect something, as if it wrote commands.
func (c *Conn) expect(expected ...Expectation) {
	for _, e := range expected {
		c.only.Forward(nil, e)
	}
	for _, e := range c.only.expected {
		replies := e.Count
		if e.Kind == Confirmations {
			replies = 1
		}
		c.only.pending.Add(int64(replies))
		c.queue.add(c.only, &e)
	}
	c.only.expected = nil
}

// feedAll feeds a stream in pieces, as the loop does, and returns the bytes that went to the client.
func (c *fedConn) feedAll(t *testing.T, pieces ...string) (got string, broken error) {
	t.Helper()
	for _, piece := range pieces {
		p := []byte(piece)
		broken = c.feed(p)
		clear(p) // it is the caller's again
		if broken != nil {
			return c.client.got(), broken
		}
	}
	if len(c.kept) > 0 {
		t.Fatalf("%q was kept back", c.kept)
	}
	return c.client.got(), nil
}

func TestReplyCounting(t *testing.T) {
	subscribe := func(names int) Expectation {
		return Expectation{Kind: Confirmations, Adds: true, Count: names}
	}
	unsubscribe := func(names int) Expectation { return Expectation{Kind: Confirmations, Count: names} }
	confirm := func(of byte, kind, name, total string) string {
		return string(of) + "3\r\n" + bulkOf(kind) + bulkOf(name) + ":" + total + "\r\n"
	}
	message := "3\r\n" + bulkOf("message") + bulkOf("c") + bulkOf("payload")
	rows := []struct {
		name     string
		version  wire.Version
		expected []Expectation
		stream   string
		client   string // "=" for all of the stream
		captured string
		owes     bool // something is still owed
		rest     subscriptions
	}{
		{name: "one each", expected: []Expectation{{Count: 3}}, stream: "+OK\r\n$3\r\nabc\r\n*2\r\n:1\r\n*1\r\n:2\r\n", client: "="},
		{name: "one is missing", expected: []Expectation{{Count: 3}}, stream: "+OK\r\n$3\r\nabc\r\n", client: "=", owes: true},
		{name: "pushes count nowhere", version: wire.RESP3, expected: []Expectation{{Count: 2}}, stream: ">2\r\n+a\r\n+b\r\n+OK\r\n>1\r\n:1\r\n", client: "=", owes: true},
		{name: "not inside either", version: wire.RESP3, expected: []Expectation{{Count: 1}}, stream: "*2\r\n>2\r\n+a\r\n+b\r\n:1\r\n:2\r\n", client: "="},
		{name: "an attribute belongs to its value", version: wire.RESP3, expected: []Expectation{{Count: 2}}, stream: "|1\r\n+k\r\n+v\r\n:1\r\n:2\r\n", client: "="},
		{name: "silent", expected: []Expectation{{Count: 1}, {Count: 2, To: ToNobody}, {Count: 1}}, stream: ":1\r\n:2\r\n$1\r\nx\r\n:4\r\n", client: ":1\r\n:4\r\n"},
		{name: "captured", expected: []Expectation{{Count: 1}, {Count: 1, To: ToOwner}, {Count: 1}}, stream: ":1\r\n*2\r\n:2\r\n$1\r\nx\r\n:4\r\n", client: ":1\r\n:4\r\n", captured: "*2\r\n:2\r\n$1\r\nx\r\n"},
		{name: "one confirmation a name", expected: []Expectation{subscribe(2), {Count: 1}}, stream: confirm('*', "subscribe", "a", "1") + confirm('*', "subscribe", "b", "2"), client: "=", owes: true, rest: subscriptions{2}},
		{name: "messages between", expected: []Expectation{subscribe(2), {Count: 1}}, stream: confirm('*', "subscribe", "c", "1") + "*" + message + confirm('*', "subscribe", "b", "2") + "*" + message + "*2\r\n" + bulkOf("pong") + bulkOf(""), client: "=", rest: subscriptions{2}},
		{name: "pattern messages", expected: []Expectation{{Kind: Confirmations, Family: wire.FamilyPattern, Adds: true, Count: 1}, {Count: 1}}, stream: confirm('*', "psubscribe", "*", "1") + "*4\r\n" + bulkOf("pmessage") + bulkOf("*") + bulkOf("c") + bulkOf("x"), client: "=", owes: true, rest: subscriptions{0, 1}},
		{name: "all names", expected: []Expectation{subscribe(2), unsubscribe(0), {Count: 1}}, stream: confirm('*', "subscribe", "a", "1") + confirm('*', "subscribe", "b", "2") + confirm('*', "unsubscribe", "b", "1") + confirm('*', "unsubscribe", "a", "0") + ":1\r\n", client: "="},
		{name: "all of no names", expected: []Expectation{unsubscribe(0), {Count: 1}}, stream: "*3\r\n" + bulkOf("unsubscribe") + "$-1\r\n:0\r\n:1\r\n", client: "="},
		{name: "all of one family", expected: []Expectation{subscribe(1), {Kind: Confirmations, Family: wire.FamilyPattern, Adds: true, Count: 1}, unsubscribe(0)}, stream: confirm('*', "subscribe", "a", "1") + confirm('*', "psubscribe", "p", "2") + confirm('*', "unsubscribe", "a", "1"), client: "=", rest: subscriptions{0, 1}},
		{name: "an error for all names", expected: []Expectation{subscribe(3), {Count: 1}}, stream: "-NOPERM no\r\n:1\r\n", client: "="},
		{name: "confirmations are never silent", expected: []Expectation{{Kind: Confirmations, Adds: true, Count: 1, To: ToNobody}, {Count: 1, To: ToNobody}}, stream: confirm('*', "subscribe", "a", "1") + "*" + message + "-ERR x\r\n", client: confirm('*', "subscribe", "a", "1") + "*" + message, rest: subscriptions{1}},
		{name: "their errors are", expected: []Expectation{{Kind: Confirmations, Adds: true, Count: 2, To: ToNobody}}, stream: "-NOPERM no\r\n", client: ""},
		{name: "confirmations in RESP3", version: wire.RESP3, expected: []Expectation{{Count: 1}, subscribe(1), {Count: 1}}, stream: ">2\r\n+invalidate\r\n_\r\n:1\r\n" + confirm('>', "subscribe", "c", "1") + ">" + message + ":2\r\n", client: "=", rest: subscriptions{1}},
		{name: "a message's shape in RESP3 is a reply", version: wire.RESP3, expected: []Expectation{subscribe(1), {Count: 1}}, stream: confirm('>', "subscribe", "c", "1") + "*" + message, client: "=", rest: subscriptions{1}},
		{name: "and in RESP2 without subscriptions", expected: []Expectation{{Count: 1}}, stream: "*" + message, client: "="},
		{name: "unasked confirmation", version: wire.RESP3, expected: []Expectation{{Kind: Confirmations, Family: wire.FamilyShard, Adds: true, Count: 1}, {Count: 1}}, stream: confirm('>', "ssubscribe", "s", "1") + confirm('>', "sunsubscribe", "s", "0") + ":1\r\n", client: "="},
		{name: "monitor", expected: []Expectation{{Kind: Stream, Count: 1}}, stream: "+OK\r\n+123 [0 x] \"GET\"\r\n+OK\r\n", client: "="},
		{name: "monitor refused", expected: []Expectation{{Kind: Stream, Count: 1}, {Count: 1}}, stream: "-ERR no\r\n+OK\r\n", client: "="},
		{name: "nothing is counted", expected: []Expectation{{Count: 1}, {Kind: Stream}}, stream: "+OK\r\n+QUEUED\r\n+OK\r\n", client: "="},
		{name: "nothing is counted from here on", expected: []Expectation{{Count: 1}, {Kind: Stream}}, stream: "+OK\r\n", client: "="},
		{name: "a switch", expected: []Expectation{{Kind: Switch, Version: wire.RESP3, Count: 1}, subscribe(1), {Count: 1}}, stream: "%0\r\n" + confirm('>', "subscribe", "c", "1") + "*" + message, client: "=", rest: subscriptions{1}},
		{name: "a switch back", version: wire.RESP3, expected: []Expectation{{Kind: Switch, Count: 1}, subscribe(1), {Count: 1}}, stream: "*0\r\n" + confirm('*', "subscribe", "c", "1") + "*" + message, client: "=", rest: subscriptions{1}, owes: true},
		{name: "a switch refused", expected: []Expectation{{Kind: Switch, Version: wire.RESP3, Count: 1}, subscribe(1), {Count: 1}}, stream: "-NOPROTO\r\n" + confirm('*', "subscribe", "c", "1") + "*" + message, client: "=", rest: subscriptions{1}, owes: true},
		{name: "long name", expected: []Expectation{subscribe(1), unsubscribe(0)}, stream: confirm('*', "subscribe", strings.Repeat("n", 100), "1") + confirm('*', "unsubscribe", strings.Repeat("n", 100), "0"), client: "="},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			want := row.client
			if want == "=" {
				want = row.stream
			}
			for cut := range len(row.stream) {
				for width := range min(4, len(row.stream)-cut) {
					u := testUpstream(row.version, 1<<20, row.expected...)
					got, broken := u.feedAll(t, row.stream[:cut], row.stream[cut:cut+width], row.stream[cut+width:])
					if got != want || broken != nil {
						t.Fatalf("cut at %d: the client gets %q (%v), want %q", cut, got, broken, want)
					}
					if captured := u.only.captured; string(captured) != row.captured {
						t.Fatalf("cut at %d: captured %q, want %q", cut, captured, row.captured)
					}
					if owes := !u.only.Drained(); owes != row.owes {
						t.Fatalf("cut at %d: owes: %v, want %v", cut, owes, row.owes)
					}
					if u.subscribed != row.rest {
						t.Fatalf("cut at %d: subscribed %v, want %v", cut, u.subscribed, row.rest)
					}
				}
			}
		})
	}
}

// A value that cannot be the reply to a command reaches nobody. An error replaces it if
// the client has no part of it yet, and nothing comes after it.
func TestStreamOutOfStep(t *testing.T) {
	for _, row := range []struct {
		name     string
		expected []Expectation
		stream   string
		want     []string // any of these, by where the stream is cut
	}{
		{"no RESP", []Expectation{{Count: 2}}, "+OK\r\n?what\r\n+OK\r\n", []string{"+OK\r\n" + string(wire.ErrUpstreamReply)}},
		{"no RESP for the session", []Expectation{{Count: 1}, {Count: 1, To: ToOwner}}, "+OK\r\n?what\r\n+OK\r\n", []string{"+OK\r\n"}},
		{"a broken value", []Expectation{{Count: 1}}, "$1\r\nxy\r\n", []string{string(wire.ErrUpstreamReply), "$", "$1", "$1\r", "$1\r\n", "$1\r\nx"}},
		{"one too many", []Expectation{{Count: 1}}, "+OK\r\n$1\r\nx\r\n", []string{"+OK\r\n"}},
		{"not asked", nil, "+OK\r\n", []string{""}},
		{"after the last confirmation", []Expectation{{Kind: Confirmations, Count: 0}, {Count: 1}},
			"*3\r\n" + bulkOf("unsubscribe") + "$-1\r\n:0\r\n:1\r\n:2\r\n", []string{"*3\r\n" + bulkOf("unsubscribe") + "$-1\r\n:0\r\n:1\r\n"}},
	} {
		for cut := range len(row.stream) {
			u := testUpstream(wire.RESP2, 1<<20, row.expected...)
			got, broken := u.feedAll(t, row.stream[:cut], row.stream[cut:])
			if !slices.Contains(row.want, got) || broken == nil {
				t.Errorf("%s, cut at %d: the client gets %q (%v), want one of %q", row.name, cut, got, broken, row.want)
			}
		}
	}
}

func TestCaptureIsBounded(t *testing.T) {
	u := testUpstream(wire.RESP2, 10, Expectation{Count: 1, To: ToOwner})
	if got, _ := u.feedAll(t, "$10\r\n0123456789\r\n"); got != "" {
		t.Errorf("the client gets %q", got)
	}
	if kept, ok := u.only.Wait(); kept != nil || !ok {
		t.Errorf("of a value that is too long, %q is kept", kept)
	}
}

// The memory of pending replies grows neither with the pipeline nor with the age of the
// connection.
func TestTheQueueStaysSmall(t *testing.T) {
	m, _ := testMember(0)
	var q queue
	for i := range 10_000 {
		q.add(m, &Expectation{Count: 1, To: Destination(i % 2)})
		if i >= 10 {
			q.take()
		}
	}
	if cap(q.list) > 512 {
		t.Errorf("the queue has grown to %d", cap(q.list))
	}
	q = queue{}
	for range 10_000 {
		q.add(m, &Expectation{Count: 1})
	}
	if len(q.list) != 1 {
		t.Errorf("%d entries for one pipeline", len(q.list))
	}
}

// The client gets the same bytes however the upstream's stream is cut. It gets nothing
// that follows an impossible value.
func FuzzReplyCounting(f *testing.F) {
	for _, stream := range []string{"+OK\r\n$3\r\nabc\r\n*1\r\n:1\r\n", ">2\r\n+a\r\n+b\r\n+OK\r\n|1\r\n+k\r\n+v\r\n:1\r\n", "-ERR x\r\n?",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*-1\r\n%1\r\n~0\r\n$-1\r\n_\r\n"} {
		for kind := range uint8(8) {
			f.Add(stream, kind, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, stream string, kind, size uint8) {
		var got [2]string
		var wrong [2]error
		for i, step := range []int{len(stream) + 1, int(size) + 1} {
			u := testUpstream(wire.Version(kind&1), 64, Expectation{Count: 1})
			if kind&2 != 0 {
				u.expect(Expectation{Kind: Confirmations, Family: wire.FamilyChannel, Adds: true, Count: 2, Names: []string{"a", "b"}})
			}
			if kind&4 != 0 {
				u.expect(Expectation{Count: 1, To: ToNobody}, Expectation{Count: 1, To: ToOwner})
			}
			u.expect(Expectation{Count: 3})
			for at := 0; at < len(stream) && wrong[i] == nil; at += step {
				wrong[i] = u.feed([]byte(stream[at:min(at+step, len(stream))]))
			}
			got[i] = u.client.got()
			if u.client.inside && !u.inside {
				t.Errorf("%q: the client is inside a value that is over", stream)
			}
		}
		if (wrong[0] == nil) != (wrong[1] == nil) || wrong[0] == nil && got[0] != got[1] {
			t.Errorf("%q: whole %q (%v), in pieces %q (%v)", stream, got[0], wrong[0], got[1], wrong[1])
		}
	})
}

// However the stream of a shared connection is cut, each client gets its own replies only.
func FuzzFeed(f *testing.F) {
	f.Add("+1\r\n$2\r\nab\r\n*1\r\n:1\r\n>1\r\n+p\r\n-e\r\n", uint8(3))
	f.Add("+1\r\n?", uint8(1))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		var got [2][2]string
		var wrong [2]error
		for i, step := range []int{len(stream) + 1, int(size) + 1} {
			c := &Conn{pool: &Pool{}}
			var clients [2]*collector
			for j := range clients {
				var m *Member
				m, clients[j] = testMember(0)
				for range 2 {
					c.queue.list = append(c.queue.list, turn{of: m, Expectation: Expectation{Count: 2}})
				}
			}
			list := c.queue.list
			list[1], list[2] = list[2], list[1]
			for at := 0; at < len(stream) && wrong[i] == nil; at += step {
				wrong[i] = c.feed([]byte(stream[at:min(at+step, len(stream))]))
			}
			for j, client := range clients {
				got[i][j] = client.got()
			}
		}
		if (wrong[0] == nil) != (wrong[1] == nil) || wrong[0] == nil && got[0] != got[1] {
			t.Errorf("%q: whole %q (%v), in pieces %q (%v)", stream, got[0], wrong[0], got[1], wrong[1])
		}
	})
}
