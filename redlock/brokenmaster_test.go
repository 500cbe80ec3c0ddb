package redlock

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/resp"
)

// brokenStreams are what a broken master may send, or a server that is no master. Each goes
// on for ever.
var brokenStreams = map[string]struct{ first, repeated string }{
	"no RESP":               {"HTTP/1.1 400 Bad Request\r\n", "x\r\n"},
	"nested arrays":         {"", "*1\r\n"},
	"nested maps":           {"", "%1\r\n:1\r\n"},
	"nested sets":           {"", "~1\r\n"},
	"nested attributes":     {"", "|1\r\n"},
	"nested pushes":         {"", ">1\r\n"},
	"attributes of nothing": {"", "|1\r\n+a\r\n+b\r\n"},
	"pushes in an array":    {"*1\r\n", ">1\r\n+a\r\n"},
	"pushes":                {"", ">2\r\n+invalidate\r\n_\r\n"},
	"a line without end":    {"+", strings.Repeat("x", 1000)},
	"an array without end":  {"*99999999999999999\r\n", ":1\r\n"},
	"a map without end":     {"%99999999999999999\r\n", ":1\r\n:2\r\n"},
	"a long text":           {"$999999999999999999\r\n", strings.Repeat("x", 1000)},
	"a longer text":         {"$9223372036854775807\r\n", strings.Repeat("x", 1000)},
	"a text beyond numbers": {"$99999999999999999999999999\r\n", strings.Repeat("x", 1000)},
	"an endless length":     {"$", "0"},
	"a text in parts":       {"$?\r\n", ";1\r\nx\r\n"},
	"answers to nothing":    {"", "+OK\r\n"},
	"arrays to nothing":     {"", "*2\r\n$1\r\na\r\n:1\r\n"},
	"errors":                {"", "-ERR what\r\n"},
}

// brokenGreetings are those that a master may also send before it has identified itself.
var brokenGreetings = map[string]bool{"no RESP": true, "nested arrays": true, "a line without end": true, "a long text": true}

// One of three masters is broken. Whatever it sends, a bounded number of bytes is read,
// and locks are taken without it. A Locker watches the clocks for a while before it counts
// votes, so all of them do that at once.
func TestBrokenMasterCostsLittle(t *testing.T) {
	masters := []*liveMaster{startLiveMaster(t), startLiveMaster(t), startLiveMaster(t)}
	driver := startLoop(t)
	type row struct {
		name   string
		greets bool
		set    *liveSet
		third  *replacedMaster
		server *brokenMaster
	}
	var rows []row
	for name, stream := range brokenStreams {
		greetings := []bool{true}
		if brokenGreetings[name] {
			greetings = []bool{true, false}
		}
		for _, greets := range greetings {
			third := &replacedMaster{dial: masters[2].dialContext}
			set := newLiveSet(t, masters, driver, func(cfg *Config) { cfg.MaxReply, cfg.Masters[2].Dial = 16<<10, third.dialContext })
			rows = append(rows, row{fmt.Sprintf("%s, greets: %v", name, greets), greets,
				set, third, startBrokenMaster(t, greets, stream.first, stream.repeated)})
		}
	}
	for _, r := range rows {
		r.set.awaitVotes()
	}
	for _, r := range rows {
		r.third.by(r.server.dial)
	}
	masters[2].must("CLIENT", "KILL", "TYPE", "normal")
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			defer r.set.close()
			r.server.awaitEnd(t)
			r.server.awaitEnd(t)
			key := []byte("lock:" + r.name)
			if o := r.set.Acquire(t.Context(), AcquireRequest{Key: key, Value: []byte(tokenA), TTL: 10 * second}); o.Verdict != Won {
				t.Errorf("the lock is %v", o.Verdict)
			}
			if o := r.set.Release(t.Context(), ReleaseRequest{Key: key}); o.Verdict != Won {
				t.Errorf("its release is %v", o.Verdict)
			}
			if longest := r.server.longest.Load(); longest > 16<<20 {
				t.Errorf("%d bytes were taken on one connection", longest)
			}
			if r.greets {
				// What is logged about a connection may come after its end.
				r.set.eventually("logged", func(*liveMaster) bool { return strings.Contains(r.set.log.String(), "sends what no Redis sends") })
			}
		})
	}
}

// A replacedMaster is a server that another one replaces under its name.
type replacedMaster struct {
	mu    sync.Mutex
	dial  func(context.Context) (net.Conn, error)
	conns []net.Conn
}

func (r *replacedMaster) dialContext(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	dial := r.dial
	r.mu.Unlock()
	conn, err := dial(ctx)
	if err == nil {
		r.mu.Lock()
		r.conns = append(r.conns, conn)
		r.mu.Unlock()
	}
	return conn, err
}

// by has another server answer from now on.
func (r *replacedMaster) by(dial func(context.Context) (net.Conn, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dial = dial
	for _, conn := range r.conns {
		_ = conn.Close()
	}
}

// A brokenMaster answers the first question of each connection properly, if it
// greets, and then sends one thing again and again until nobody reads.
type brokenMaster struct {
	address string
	ended   chan struct{} // one for each connection
	longest atomic.Int64  // bytes written on one of them
}

func startBrokenMaster(t *testing.T, greets bool, first, repeated string) *brokenMaster {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &brokenMaster{address: listener.Addr().String(), ended: make(chan struct{}, 1000)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { m.speak(conn, greets, first, repeated) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return m
}

func (m *brokenMaster) speak(conn net.Conn, greets bool, first, repeated string) {
	defer func() { _ = conn.Close() }()
	question := make([]byte, 4096)
	if greets {
		_, _ = conn.Read(question)
		_, _ = io.WriteString(conn, ":7\r\n"+bulkReply("redis_version:7.0.15\r\nrun_id:broken\r\nredis_mode:standalone\r\n")+bulkReply("role:master\r\n")+"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")
	}
	if _, err := conn.Read(question); err != nil {
		return
	}
	block := strings.Repeat(repeated, 1+(16<<10)/len(repeated))
	written, err := io.WriteString(conn, first)
	for err == nil {
		var n int
		n, err = io.WriteString(conn, block)
		written += n
	}
	for longest := m.longest.Load(); int64(written) > longest && !m.longest.CompareAndSwap(longest, int64(written)); {
		longest = m.longest.Load()
	}
	m.ended <- struct{}{}
}

func (m *brokenMaster) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", m.address)
}

// awaitEnd returns when one more connection has ended.
func (m *brokenMaster) awaitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(livePatience):
		t.Fatal("the broken master is still listened to")
	}
}

func bulkReply(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// A marker, and a master's unsolicited messages, may be anything.
func FuzzWhatAMasterSays(f *testing.F) {
	for _, text := range []string{"run_id:x\r\nrole:master\r\nredis_mode:standalone\r\n", marker.Marker{Set: "s", Member: 1, Members: 3, Epoch: 1, Joined: []string{"1", "1", "1@a:1"}, Run: "r"}.String(), ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ">2\r\n$10\r\ninvalidate\r\n_\r\n", "*0\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "!5\r\nERR x\r\n", "*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := marker.Parse(text); ok && (m.Member < 0 || m.Members < 0 || m.Epoch < 0) {
			t.Errorf("%q is read as %+v", text, m)
		}
		reply := []byte(text)
		var s resp.Scanner
		if n, done, err := s.Scan(reply); err != nil || !done || n != len(reply) {
			return
		}
		_, _ = parseReading([][]byte{reply, reply})
		_, _ = resp.ParseTime(reply)
		_, _ = resp.ParseInteger(reply)
		_ = resp.CannotServe(reply)
		if resp.IsError(reply) {
			_ = resp.ErrorText(reply)
		}
	})
}
