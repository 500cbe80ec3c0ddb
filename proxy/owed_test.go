package proxy

import (
	"bytes"
	"net"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
)

// collector is a client's socket that keeps what is written to it.
type collector struct {
	net.Conn
	bytes.Buffer
}

func (c *collector) Write(p []byte) (int, error) { return c.Buffer.Write(p) }
func (c *collector) Read(p []byte) (int, error)  { return c.Buffer.Read(p) }

// feed gives the copier a stream in pieces, the way its read loop does, and
// returns what went to the client.
func (u *upstream) feed(t *testing.T, pieces ...string) string {
	t.Helper()
	client := &collector{}
	u.client = conn.NewWriter(conn.NewSocket(client, &conn.Clock{}))
	var kept []byte
	for _, piece := range pieces {
		p := append(kept, piece...)
		if len(p) == 0 {
			continue
		}
		used, ok := u.deliver(p)
		if !ok {
			t.Fatal("the client is said to take no more")
		}
		if u.broken != nil {
			return client.String()
		}
		kept = bytes.Clone(p[used:])
	}
	if len(kept) > 0 {
		t.Fatalf("%q was kept back", kept)
	}
	u.client.Lock() // it was given back
	defer u.client.Unlock()
	return client.String()
}

func TestReplyCounting(t *testing.T) {
	subscribe := func(names int) debt {
		return debt{kind: debtConfirmations, adds: true, left: names}
	}
	unsubscribe := func(names int) debt { return debt{kind: debtConfirmations, left: names} }
	confirm := func(of byte, kind, name, total string) string {
		return string(of) + "3\r\n" + bulk(kind) + bulk(name) + ":" + total + "\r\n"
	}
	message := "3\r\n" + bulk("message") + bulk("c") + bulk("payload")
	rows := []struct {
		name     string
		version  wire.Version
		debts    []debt
		stream   string
		client   string // "=" for all of the stream
		captured string
		owes     bool // something is still owed
		rest     [3]int
	}{
		{name: "one each", debts: []debt{{left: 3}}, stream: "+OK\r\n$3\r\nabc\r\n*2\r\n:1\r\n*1\r\n:2\r\n", client: "="},
		{name: "one is missing", debts: []debt{{left: 3}}, stream: "+OK\r\n$3\r\nabc\r\n", client: "=", owes: true},
		{name: "pushes count nowhere", version: wire.RESP3, debts: []debt{{left: 2}}, stream: ">2\r\n+a\r\n+b\r\n+OK\r\n>1\r\n:1\r\n", client: "=", owes: true},
		{name: "not inside either", version: wire.RESP3, debts: []debt{{left: 1}}, stream: "*2\r\n>2\r\n+a\r\n+b\r\n:1\r\n:2\r\n", client: "="},
		{name: "an attribute belongs to its value", version: wire.RESP3, debts: []debt{{left: 2}}, stream: "|1\r\n+k\r\n+v\r\n:1\r\n:2\r\n", client: "="},
		{name: "silent", debts: []debt{{left: 1}, {left: 2, silent: true}, {left: 1}}, stream: ":1\r\n:2\r\n$1\r\nx\r\n:4\r\n", client: ":1\r\n:4\r\n"},
		{name: "captured", debts: []debt{{left: 1}, {left: 1, capture: true}, {left: 1}}, stream: ":1\r\n*2\r\n:2\r\n$1\r\nx\r\n:4\r\n", client: ":1\r\n:4\r\n", captured: "*2\r\n:2\r\n$1\r\nx\r\n"},
		{name: "one confirmation a name", debts: []debt{subscribe(2), {left: 1}}, stream: confirm('*', "subscribe", "a", "1") + confirm('*', "subscribe", "b", "2"), client: "=", owes: true, rest: [3]int{2}},
		{name: "messages between", debts: []debt{subscribe(2), {left: 1}}, stream: confirm('*', "subscribe", "c", "1") + "*" + message + confirm('*', "subscribe", "b", "2") + "*" + message + "*2\r\n" + bulk("pong") + bulk(""), client: "=", rest: [3]int{2}},
		{name: "pattern messages", debts: []debt{{kind: debtConfirmations, family: wire.FamilyPattern, adds: true, left: 1}, {left: 1}}, stream: confirm('*', "psubscribe", "*", "1") + "*4\r\n" + bulk("pmessage") + bulk("*") + bulk("c") + bulk("x"), client: "=", owes: true, rest: [3]int{0, 1}},
		{name: "all names", debts: []debt{subscribe(2), unsubscribe(0), {left: 1}}, stream: confirm('*', "subscribe", "a", "1") + confirm('*', "subscribe", "b", "2") + confirm('*', "unsubscribe", "b", "1") + confirm('*', "unsubscribe", "a", "0") + ":1\r\n", client: "="},
		{name: "all of no names", debts: []debt{unsubscribe(0), {left: 1}}, stream: "*3\r\n" + bulk("unsubscribe") + "$-1\r\n:0\r\n:1\r\n", client: "="},
		{name: "all of one family", debts: []debt{subscribe(1), {kind: debtConfirmations, family: wire.FamilyPattern, adds: true, left: 1}, unsubscribe(0)}, stream: confirm('*', "subscribe", "a", "1") + confirm('*', "psubscribe", "p", "2") + confirm('*', "unsubscribe", "a", "1"), client: "=", rest: [3]int{0, 1}},
		{name: "an error for all names", debts: []debt{subscribe(3), {left: 1}}, stream: "-NOPERM no\r\n:1\r\n", client: "="},
		{name: "confirmations are never silent", debts: []debt{{kind: debtConfirmations, adds: true, left: 1, silent: true}, {left: 1, silent: true}}, stream: confirm('*', "subscribe", "a", "1") + "*" + message + "-ERR x\r\n", client: confirm('*', "subscribe", "a", "1") + "*" + message, rest: [3]int{1}},
		{name: "their errors are", debts: []debt{{kind: debtConfirmations, adds: true, left: 2, silent: true}}, stream: "-NOPERM no\r\n", client: ""},
		{name: "confirmations in RESP3", version: wire.RESP3, debts: []debt{{left: 1}, subscribe(1), {left: 1}}, stream: ">2\r\n+invalidate\r\n_\r\n:1\r\n" + confirm('>', "subscribe", "c", "1") + ">" + message + ":2\r\n", client: "=", rest: [3]int{1}},
		{name: "a message's shape in RESP3 is a reply", version: wire.RESP3, debts: []debt{subscribe(1), {left: 1}}, stream: confirm('>', "subscribe", "c", "1") + "*" + message, client: "=", rest: [3]int{1}},
		{name: "and in RESP2 without subscriptions", debts: []debt{{left: 1}}, stream: "*" + message, client: "="},
		{name: "unasked confirmation", version: wire.RESP3, debts: []debt{{kind: debtConfirmations, family: wire.FamilyShard, adds: true, left: 1}, {left: 1}}, stream: confirm('>', "ssubscribe", "s", "1") + confirm('>', "sunsubscribe", "s", "0") + ":1\r\n", client: "="},
		{name: "monitor", debts: []debt{{kind: debtStream, left: 1}}, stream: "+OK\r\n+123 [0 x] \"GET\"\r\n+OK\r\n", client: "="},
		{name: "monitor refused", debts: []debt{{kind: debtStream, left: 1}, {left: 1}}, stream: "-ERR no\r\n+OK\r\n", client: "="},
		{name: "long name", debts: []debt{subscribe(1), unsubscribe(0)}, stream: confirm('*', "subscribe", strings.Repeat("n", 100), "1") + confirm('*', "unsubscribe", strings.Repeat("n", 100), "0"), client: "="},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			want := row.client
			if want == "=" {
				want = row.stream
			}
			for cut := range len(row.stream) {
				for width := range min(4, len(row.stream)-cut) {
					u := &upstream{owed: newOwed(row.version), captures: 1 << 20}
					for _, d := range row.debts {
						u.owed.add(d)
					}
					got := u.feed(t, row.stream[:cut], row.stream[cut:cut+width], row.stream[cut+width:])
					if got != want {
						t.Fatalf("cut at %d: the client gets %q, want %q", cut, got, want)
					}
					if captured, _ := u.takeCapture(); string(captured) != row.captured {
						t.Fatalf("cut at %d: captured %q, want %q", cut, captured, row.captured)
					}
					if owes := !u.owed.settled(false); owes != row.owes {
						t.Fatalf("cut at %d: owes: %v, want %v", cut, owes, row.owes)
					}
					if u.owed.subscribed != row.rest {
						t.Fatalf("cut at %d: subscribed %v, want %v", cut, u.owed.subscribed, row.rest)
					}
				}
			}
		})
	}
}

// What cannot be the reply to what was asked reaches nobody: an error stands in
// its place where none of it was passed on yet, and nothing comes after it.
func TestStreamOutOfStep(t *testing.T) {
	for _, row := range []struct {
		name   string
		debts  []debt
		stream string
		want   []string // any of these, by where the stream is cut
	}{
		{"no RESP", []debt{{left: 2}}, "+OK\r\n?what\r\n+OK\r\n", []string{"+OK\r\n" + wire.ErrUpstreamReply}},
		{"no RESP for the session", []debt{{left: 1}, {left: 1, capture: true}}, "+OK\r\n?what\r\n+OK\r\n", []string{"+OK\r\n"}},
		{"a broken value", []debt{{left: 1}}, "$1\r\nxy\r\n", []string{wire.ErrUpstreamReply, "$", "$1", "$1\r", "$1\r\n", "$1\r\nx"}},
		{"one too many", []debt{{left: 1}}, "+OK\r\n$1\r\nx\r\n", []string{"+OK\r\n"}},
		{"not asked", nil, "+OK\r\n", []string{""}},
		{"after the last confirmation", []debt{{kind: debtConfirmations, left: 0}, {left: 1}},
			"*3\r\n" + bulk("unsubscribe") + "$-1\r\n:0\r\n:1\r\n:2\r\n", []string{"*3\r\n" + bulk("unsubscribe") + "$-1\r\n:0\r\n:1\r\n"}},
	} {
		for cut := range len(row.stream) {
			u := &upstream{owed: newOwed(wire.RESP2), captures: 1 << 20}
			for _, d := range row.debts {
				u.owed.add(d)
			}
			got := u.feed(t, row.stream[:cut], row.stream[cut:])
			if !slices.Contains(row.want, got) || u.broken == nil {
				t.Errorf("%s, cut at %d: the client gets %q (%v), want one of %q", row.name, cut, got, u.broken, row.want)
			}
		}
	}
}

func TestCaptureIsBounded(t *testing.T) {
	u := &upstream{owed: newOwed(wire.RESP2), captures: 10}
	u.owed.add(debt{left: 1, capture: true})
	if got := u.feed(t, "$10\r\n0123456789\r\n"); got != "" {
		t.Errorf("the client gets %q", got)
	}
	if _, ok := u.takeCapture(); ok {
		t.Error("a value that is too long is said to be whole")
	}
}

// What is owed takes no memory that grows with the pipeline, nor with the
// connection's age.
func TestOwedStaysSmall(t *testing.T) {
	o := newOwed(wire.RESP2)
	for i := range 10_000 {
		o.add(debt{left: 1, silent: i%2 == 0})
		if i < 10 {
			continue
		}
		o.begin([]byte("+"))
		o.end('+', nil)
	}
	if cap(o.queue) > 512 {
		t.Errorf("the queue has grown to %d", cap(o.queue))
	}
	o = newOwed(wire.RESP2)
	for range 10_000 {
		o.add(debt{left: 1})
	}
	if len(o.queue) != 1 {
		t.Errorf("%d entries for one pipeline", len(o.queue))
	}
}

// What an upstream sends reaches the client the same however it is cut, and
// nothing that follows what cannot be.
func FuzzReplyCounting(f *testing.F) {
	for _, stream := range []string{"+OK\r\n$3\r\nabc\r\n*1\r\n:1\r\n", ">2\r\n+a\r\n+b\r\n+OK\r\n|1\r\n+k\r\n+v\r\n:1\r\n", "-ERR x\r\n?",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n:2\r\n:3\r\n:4\r\n", "*-1\r\n%1\r\n~0\r\n$-1\r\n_\r\n"} {
		for kind := range uint8(8) {
			f.Add(stream, kind, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, stream string, kind, size uint8) {
		copier := func() *upstream {
			u := &upstream{owed: newOwed(wire.Version(kind & 1)), captures: 64}
			u.owed.add(debt{left: 1})
			if kind&2 != 0 {
				u.owed.add(debt{kind: debtConfirmations, family: wire.FamilyChannel, adds: true, left: 2, names: []string{"a", "b"}})
			}
			if kind&4 != 0 {
				u.owed.add(debt{left: 1, silent: true})
				u.owed.add(debt{left: 1, capture: true})
			}
			u.owed.add(debt{left: 3})
			return u
		}
		whole, pieces := copier(), copier()
		var client collector
		var got [2]string
		for i, u := range []*upstream{whole, pieces} {
			client = collector{}
			u.client = conn.NewWriter(conn.NewSocket(&client, &conn.Clock{}))
			step := len(stream) + 1
			if i == 1 {
				step = int(size) + 1
			}
			var kept []byte
			for at := 0; at < len(stream) && u.broken == nil; at += step {
				kept = append(kept, stream[at:min(at+step, len(stream))]...)
				used, ok := u.deliver(kept)
				if !ok {
					t.Fatal("the client is said to take no more")
				}
				kept = bytes.Clone(kept[used:])
			}
			got[i] = client.String()
		}
		if whole.broken == nil && pieces.broken == nil && got[0] != got[1] {
			t.Errorf("%q: whole %q, in pieces %q", stream, got[0], got[1])
		}
		if (whole.broken == nil) != (pieces.broken == nil) {
			t.Errorf("%q: whole %v, in pieces %v", stream, whole.broken, pieces.broken)
		}
	})
}
