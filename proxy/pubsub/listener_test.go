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
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
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

func (x *fixture) peek(_ context.Context, _ int, name, key string) []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	value, held := x.values[key]
	switch {
	case name == "PTTL":
		return []byte(":-1\r\n")
	case !held:
		return []byte("$-1\r\n")
	}
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(value), value)
}

func (x *fixture) put(key, value string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.values[key] = value
}

// listen makes a Listener of a session whose client sends nothing.
func listen(t *testing.T) *fixture {
	meter, err := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	active := config.NewActive(&config.Settings{
		Config: &config.Config{Limits: config.Limits{Memory: 1 << 30, Output: 1 << 20}},
		Router: &route.Router{Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}},
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

// A message reaches a client only between the confirmations of SUBSCRIBE and
// UNSUBSCRIBE.
func TestMessagesComeBetweenConfirmations(t *testing.T) {
	x := listen(t)
	x.publish("a", "before the command")
	if !x.l.Expect(wire.FamilyChannel, "a") || x.l.Expect(wire.FamilyChannel, "a") {
		t.Error("the masters must be asked exactly once")
	}
	x.l.Ask(t.Context(), wire.FamilyChannel, "a")
	x.confirm(true, "a")
	x.publish("b", "of another channel")
	x.publish("a", "1")
	x.expect("message", "a", "1")
	x.session.Writer().Lock()
	x.publish("a", "while it ends")
	x.l.Confirm(wire.Confirmation{Family: wire.FamilyChannel, Names: []string{"a"}})
	x.session.Writer().Unlock()
	if !x.l.UnsubscribeUnwanted() || x.l.Any() || x.source.asked[len(x.source.asked)-1] != "-a" {
		t.Errorf("the masters were asked %q", x.source.asked)
	}
}

// If messages may be lost, the client gets those from before the gap, and its session
// ends.
func TestGapEndsTheSession(t *testing.T) {
	x := listen(t)
	x.l.Expect(wire.FamilyChannel, "a")
	x.confirm(true, "a")
	x.publish("a", "1")
	x.source.onEvent(redlock.Event{Kind: redlock.EventGap})
	x.expect("message", "a", "1")
	x.awaitEnd(session.MissedMessages)
}

func TestClientThatDoesNotReadIsLeft(t *testing.T) {
	x := listen(t)
	x.l.Expect(wire.FamilyChannel, "a")
	x.confirm(true, "a")
	for range 20 {
		x.publish("a", strings.Repeat("x", 100_000))
	}
	if !x.session.HasEnded(session.Overflow) {
		t.Error("the session has not ended")
	}
	x.publish("a", "more") // must be dropped
	x.client = nil
}

// A client gets one invalidation for a key that it has read, behind the reply to its
// command.
func TestTrackedKeys(t *testing.T) {
	x := listen(t)
	x.l.Track(&Mode{})
	changed := func(key string) { x.source.onEvent(redlock.Event{Kind: redlock.EventChanged, Key: []byte(key)}) }
	x.l.Begin([]string{"lock:a"}, true)
	x.l.TrackKeys(t.Context(), []string{"lock:a"})
	changed("lock:a") // before the reply is written
	x.l.Answered([]string{"lock:a"}, nil)
	x.l.Replied([]string{"lock:a"})
	x.expect("invalidate", "lock:a")
	changed("lock:a")
	changed("lock:b")
	x.l.Begin([]string{"lock:b"}, true)
	x.l.Replied([]string{"lock:b"})
	changed("lock:b")
	x.expect("invalidate", "lock:b")
	x.l.Track(nil)
	x.l.ForgetKeys()
}

func TestTrackedKeysAreBounded(t *testing.T) {
	x := listen(t)
	x.l.Track(&Mode{})
	for i := range MaxTrackedKeys + 5 {
		key := []string{fmt.Sprint("lock:", i)}
		x.l.Begin(key, true)
		x.l.Replied(key)
	}
	x.l.mu.Lock()
	defer x.l.mu.Unlock()
	if n := len(x.l.tracked.keys); n != MaxTrackedKeys {
		t.Errorf("%d keys are kept", n)
	}
}

// With NOLOOP a client gets no invalidation while a key holds a value that the client
// stored itself.
func TestOwnChangesAreKeptBack(t *testing.T) {
	x := listen(t)
	x.l.Track(&Mode{NoLoop: true})
	keys := []string{"lock:a"}
	x.put("lock:a", "my-own-token-0001")
	x.l.Begin(keys, true)
	x.l.Answered(keys, &ownCommand{values: [][]byte{[]byte("my-own-token-0001")}})
	x.l.Replied(keys)
	changed := func() { x.source.onEvent(redlock.Event{Kind: redlock.EventChanged, Key: []byte("lock:a")}) }
	changed()
	x.l.Expect(wire.FamilyChannel, "c")
	x.confirm(true, "c")
	x.publish("c", "after the first change")
	x.expect("message", "c", "after the first change")
	x.put("lock:a", "somebody-else-0001")
	changed()
	x.expect("invalidate", "lock:a")
}
