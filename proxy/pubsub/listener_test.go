package pubsub

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// fakeHost is a session that only records the calls of its methods.
type fakeHost struct {
	mu     sync.Mutex
	told   []string
	values map[string]string // the values that Peek returns
	limit  int64
}

func (h *fakeHost) tell(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, what)
}

func (h *fakeHost) was(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, told := range h.told {
		if told == what {
			return true
		}
	}
	return false
}

func (h *fakeHost) Covers(key []byte) bool { return strings.HasPrefix(string(key), "lock:") }
func (h *fakeHost) OutputLimit() int64     { return h.limit }
func (h *fakeHost) InPipe() bool           { return false }
func (h *fakeHost) Delivered(int, int)     {}
func (h *fakeHost) ClientLeft()            { h.tell("left") }
func (h *fakeHost) Overflow(memory bool)   { h.tell(fmt.Sprint("overflow ", memory)) }
func (h *fakeHost) MissedMessages(string)  { h.tell("missed") }
func (h *fakeHost) Panicked(reason any)    { h.tell(fmt.Sprint("panic ", reason)) }

func (h *fakeHost) Peek(_ context.Context, _ int, name, key string) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, held := h.values[key]
	switch {
	case name == "PTTL":
		return []byte(":-1\r\n")
	case !held:
		return []byte("$-1\r\n")
	}
	return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(value), value)
}

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
	t      *testing.T
	host   *fakeHost
	source *fakeSource
	out    *conn.Writer
	memory *conn.Budget
	client *bufio.Reader
	l      *listener
}

func listen(t *testing.T) *fixture {
	l := proxytest.Loop(t)
	near, far := net.Pipe()
	_ = far.SetReadDeadline(time.Now().Add(time.Minute))
	x := &fixture{t: t, host: &fakeHost{limit: 1 << 20, values: map[string]string{}}, client: bufio.NewReader(far)}
	sock, err := conn.Adopt(near, l, nil, &conn.Clock{}, proxytest.Deaf{})
	if err != nil {
		t.Fatal(err)
	}
	x.out = conn.NewWriter(sock)
	x.memory = conn.NewBudget(func() int64 { return 1 << 30 })
	x.l = startListener(t.Context(), x.host, func(onEvent func(redlock.Event)) Source {
		x.source = &fakeSource{onEvent: onEvent}
		return x.source
	}, x.out, x.memory, wire.RESP3)
	t.Cleanup(func() {
		sock.Close()
		_ = far.Close()
		x.l.Close()
		if used := x.memory.InUse(); used != 0 {
			t.Errorf("the listener still holds %d bytes of memory", used)
		}
	})
	return x
}

func (x *fixture) publish(channel, text string) {
	x.source.onEvent(redlock.Event{Kind: redlock.EventMessage, Channel: []byte(channel), Payload: []byte(text)})
}

func (x *fixture) confirm(adds bool, name string) {
	x.out.Lock()
	defer x.out.Unlock()
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

func (x *fixture) eventually(what string) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); !x.host.was(what); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("the listener never reported %q to the session", what)
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
	x.out.Lock()
	x.publish("a", "while it ends")
	x.l.Confirm(wire.Confirmation{Family: wire.FamilyChannel, Names: []string{"a"}})
	x.out.Unlock()
	if !x.l.UnsubscribeUnwanted() || x.l.Subscribed() || x.source.asked[len(x.source.asked)-1] != "-a" {
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
	x.eventually("missed")
}

func TestClientThatDoesNotReadIsLeft(t *testing.T) {
	x := listen(t)
	x.l.Expect(wire.FamilyChannel, "a")
	x.confirm(true, "a")
	for range 20 {
		x.publish("a", strings.Repeat("x", 100_000))
	}
	if !x.host.was("overflow false") {
		t.Error("the listener did not report the overflow")
	}
	x.publish("a", "more") // must be dropped
	x.client = nil
}

// A client gets one invalidation for a key that it has read, behind the reply to its
// command.
func TestTrackedKeys(t *testing.T) {
	x := listen(t)
	x.l.Track(&trackingMode{})
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
	x.l.Track(&trackingMode{})
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
	x.l.Track(&trackingMode{NoLoop: true})
	keys := []string{"lock:a"}
	x.host.values["lock:a"] = "my-own-token-0001"
	x.l.Begin(keys, true)
	x.l.Answered(keys, &ownCommand{values: [][]byte{[]byte("my-own-token-0001")}})
	x.l.Replied(keys)
	changed := func() { x.source.onEvent(redlock.Event{Kind: redlock.EventChanged, Key: []byte("lock:a")}) }
	changed()
	x.l.Expect(wire.FamilyChannel, "c")
	x.confirm(true, "c")
	x.publish("c", "after the first change")
	x.expect("message", "c", "after the first change")
	x.host.mu.Lock()
	x.host.values["lock:a"] = "somebody-else-0001"
	x.host.mu.Unlock()
	changed()
	x.expect("invalidate", "lock:a")
}
