package pubsub

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// fakeSource reports the events that a test passes to onEvent.
type fakeSource struct {
	Source
	onEvent func(redlock.Event)
	asked   []string
}

func (s *fakeSource) Subscribe(_ context.Context, names ...string) {
	s.asked = append(s.asked, names...)
}
func (s *fakeSource) Unsubscribe(names ...string) {
	s.asked = append(s.asked, "-"+strings.Join(names, " -"))
}
func (s *fakeSource) Track(context.Context, ...string) {}
func (s *fakeSource) Untrack(...string)                {}
func (s *fakeSource) Close()                           {}

type fixture struct {
	t       *testing.T
	session *session.Session
	source  *fakeSource
	client  *bufio.Reader
	l       *Listener

	mu     sync.Mutex
	values map[string]string // what Peek finds
}

func (x *fixture) peek(_ context.Context, _ int, key string) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	value, held := x.values[key]
	switch {
	case !held:
		return []byte("$-1\r\n")
	}
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(value), value)
}

// listen makes a Listener of a session whose client sends nothing.
func listen(t *testing.T) *fixture {
	meter, err := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	active := config.NewActive(&config.Settings{
		Config: &config.Config{Limits: config.Limits{Memory: 1 << 30, Output: 1 << 20}},
		Router: &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}},
	})
	env := session.NewEnv(active, meter, slog.New(slog.DiscardHandler), proxytest.Loop(t))
	near, far := net.Pipe()
	_ = far.SetReadDeadline(time.Now().Add(time.Minute))
	x := &fixture{t: t, session: session.New(t.Context(), env, 1, near), client: bufio.NewReader(far), values: map[string]string{}}
	begun, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	env.Loop.Go(func(task *loop.Task) (rests bool) {
		select {
		case <-begun:
		default:
			x.session.Begin(task)
			close(begun)
		}
		select {
		case <-over:
		default:
			if !x.session.Ending() {
				return true
			}
		}
		x.session.Release()
		close(ended)
		return false
	})
	<-begun
	x.l = Listen(x.session, func(onEvent func(redlock.Event)) Source {
		x.source = &fakeSource{onEvent: onEvent}
		return x.source
	}, x.peek, wire.RESP3)
	t.Cleanup(func() {
		x.l.Close()
		close(over)
		_ = far.Close() // the loop calls the task once more
		<-ended
		if used := env.Budget.InUse(); used != 0 {
			t.Errorf("%d bytes of memory are still charged", used)
		}
	})
	return x
}

func (x *fixture) publish(channel, text string) {
	x.source.onEvent(redlock.Event{Kind: redlock.EventMessage, Channel: []byte(channel), Payload: []byte(text)})
}

func (x *fixture) confirm(adds bool, name string) {
	x.session.Writer().Lock()
	defer x.session.Writer().Unlock()
	x.l.Confirm(wire.Confirmation{Family: wire.FamilyChannel, Adds: adds, Names: []string{name}})
}

func (x *fixture) expect(words ...string) {
	x.t.Helper()
	var want strings.Builder
	fmt.Fprintf(&want, ">%d\r\n", len(words))
	for i, word := range words {
		if i == 1 && words[0] == "invalidate" {
			want.WriteString("*1\r\n")
		}
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(word), word)
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(x.client, got); err != nil || string(got) != want.String() {
		x.t.Fatalf("the client read %q (%v), want %q", got, err, want.String())
	}
}

func (x *fixture) awaitEnd(why session.Reason) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); !x.session.HasEnded(why); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatal("the session does not end")
		}
	}
}

// subscribe has the client subscribe to a channel.
func (x *fixture) subscribe(channel string) {
	x.l.Subscribe(x.t.Context(), wire.FamilyChannel, []string{channel})
	x.confirm(true, channel)
}

// A log that takes its time holds up nobody who writes to the client.
func TestTheEndIsLoggedWithoutTheWriteLock(t *testing.T) {
	for why, event := range map[session.Reason]redlock.Event{
		session.MissedMessages: {Kind: redlock.EventGap},
		session.Overflow:       {Kind: redlock.EventMessage, Channel: []byte("a"), Payload: make([]byte, 2<<20)},
	} {
		x := listen(t)
		lines := &lockChecker{t: t, out: x.session.Writer()}
		x.session.Env.Log = slog.New(slog.NewTextHandler(lines, nil))
		x.subscribe("a")
		x.source.onEvent(event)
		x.awaitEnd(why)
		if lines.checked == 0 {
			t.Errorf("reason %d is not logged", why)
		}
	}
}

// A client that does not read is cut off, though it may miss messages, too.
func TestOverflowComesBeforeAGap(t *testing.T) {
	x := listen(t)
	x.subscribe("a")
	x.l.Track(t.Context(), &Mode{})
	x.begin(true, "get", "lock:a")
	x.l.Replied([]byte("$-1\r\n"))
	header := len(">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1048500\r\n\r\n")
	x.publish("a", strings.Repeat("x", 1<<20-header-10)) // all but a few bytes of the limit
	if x.session.HasEnded(session.Overflow) {
		t.Fatal("it ends before the gap")
	}
	x.source.onEvent(redlock.Event{Kind: redlock.EventGap})
	if !x.session.HasEnded(session.Overflow) || x.session.HasEnded(session.MissedMessages) {
		t.Error("it is not cut off")
	}
}

// A lockChecker is a log that fails the test if a client's write lock is held.
type lockChecker struct {
	t       *testing.T
	out     *upstream.Writer
	checked int
}

func (c *lockChecker) Write(p []byte) (int, error) {
	if c.checked++; !c.out.TryLock() {
		c.t.Errorf("the lock is held at %s", p)
	} else {
		c.out.Unlock()
	}
	return len(p), nil
}

// What waits for a client is charged until the client has taken it.
func TestWhatWaitsIsCharged(t *testing.T) {
	x := listen(t)
	x.subscribe("a")
	before, message := x.l.memory.InUse(), strings.Repeat("x", 500_000)
	x.publish("a", message)
	if used := x.l.memory.InUse() - before; used < 500_000 {
		t.Errorf("%d bytes are charged for a message that waits", used)
	}
	x.expect("message", "a", message)
	for end := time.Now().Add(time.Minute); x.l.memory.InUse() != before; time.Sleep(time.Millisecond) {
		if x.l.GiveBack(); time.Now().After(end) {
			t.Fatalf("%d bytes are charged for a message that was taken", x.l.memory.InUse()-before)
		}
	}
}

// Replies that the client has not taken do not count as messages.
func TestRepliesAreNoMessages(t *testing.T) {
	x := listen(t)
	x.subscribe("a")
	before, reply := x.l.memory.InUse(), strings.Repeat("r", 2<<20) // longer than the limit for messages
	x.l.out.Lock()
	_ = x.l.out.Append([]byte(reply))
	x.l.out.Unlock()
	x.publish("a", "1")
	x.publish("a", "2")
	if used := x.l.memory.InUse() - before; used == 0 || used > 1000 {
		t.Errorf("%d bytes are charged for two short messages", used)
	}
	if _, err := io.ReadFull(x.client, make([]byte, len(reply))); err != nil {
		t.Fatal(err)
	}
	x.expect("message", "a", "1")
	x.expect("message", "a", "2")
	if x.session.HasEnded(session.Overflow) {
		t.Error("the session has ended")
	}
}

// Memory for what waits is given back once, also if the sweep still has the Listener after its end.
func TestMemoryIsGivenBackOnce(t *testing.T) {
	x := listen(t)
	x.subscribe("a")
	message := strings.Repeat("x", 500_000)
	x.publish("a", message)
	swept := make(chan struct{})
	go func() { defer close(swept); x.l.GiveBack() }()
	x.l.Close()
	<-swept
	x.expect("message", "a", message)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		x.l.out.Lock()
		left := x.l.out.Backlog()
		x.l.out.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the message is not taken")
		}
	}
	x.l.GiveBack()
	if used := x.l.memory.InUse(); used != 0 {
		t.Errorf("%d bytes are charged after the end", used)
	}
}

// begin begins a command of the client on a key.
func (x *fixture) begin(reads bool, name string, args ...string) {
	router := x.session.Env.Active.Load().Router
	call := lock.Command{Args: [][]byte{[]byte(name)}}
	for _, arg := range args {
		call.Args = append(call.Args, []byte(arg))
	}
	call.Route = router.Route(0, call.Args)
	x.l.Begin(x.t.Context(), []lock.Command{call}, reads)
}
