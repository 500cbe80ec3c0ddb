package upstream

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

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

// TestFeed plays the scripts of testdata: what is expected of a server, its stream, and where that goes. It goes there
// however it is cut, unless the script has several outcomes.
func TestFeed(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, script *datatest.Script) {
		version, expected := wire.RESP2, []Expectation(nil)
		for event := range script.Events {
			stream, isStream := strings.CutPrefix(event, "stream ")
			switch {
			case event == "in RESP3":
				version = wire.RESP3
			case isStream:
				for _, outcome := range outcomes(t, version, expected, proxytest.Unquote(stream)) {
					script.Printf("%s", outcome)
				}
			default:
				expected = append(expected, expectation(t, event))
			}
		}
	})
}

// expectation reads "expect replies 2 for nobody".
func expectation(t *testing.T, text string) (e Expectation) {
	t.Helper()
	var kind string
	if _, err := fmt.Sscanf(text, "expect %s %d", &kind, &e.Count); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	switch family := slices.Index([]string{"subscribe", "psubscribe", "ssubscribe"}, strings.TrimPrefix(kind, "un")); {
	case family >= 0:
		e.Kind, e.Family, e.Adds = Confirmations, wire.Family(family), !strings.HasPrefix(kind, "un")
	case kind == "stream":
		e.Kind = Stream
	case kind == "RESP": // HELLO
		e.Kind, e.Version, e.Count = Switch, wire.Version(e.Count-2), 1
	}
	switch {
	case strings.HasSuffix(text, " for nobody"):
		e.To = ToNobody
	case strings.HasSuffix(text, " for the owner"):
		e.To = ToOwner
	}
	return e
}

// outcomes are what may come of a stream, by where it is cut.
func outcomes(t *testing.T, version wire.Version, expected []Expectation, stream string) (all []string) {
	t.Helper()
	for cut := range len(stream) {
		for width := range min(4, len(stream)-cut) {
			u := testUpstream(version, 1<<20, expected...)
			got, broken := u.feedAll(t, stream[:cut], stream[cut:cut+width], stream[cut+width:])
			told := fmt.Sprintf("the client gets %q", got)
			if got == stream {
				told = "the client gets all"
			}
			if len(u.only.captured) > 0 {
				told += fmt.Sprintf(", the owner %q", u.only.captured)
			}
			if broken != nil {
				told += ", and the connection ends"
			} else if !u.only.Drained() {
				told += ", and more is expected"
			}
			if u.subscribed != (subscriptions{}) {
				told += fmt.Sprintf("; subscribed %v", u.subscribed)
			}
			if !slices.Contains(all, told) {
				all = append(all, told)
			}
		}
	}
	slices.Sort(all)
	return all
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
