package redlock

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/notify"
	"redlock-proxy/redlock/resp"
)

// Listeners on real servers: only a real server shows what it sends, and when.

// liveTimeout is the time for which a message waits for the masters that have not sent it.
// On a busy machine a message of all masters must not look like a minority's. So the time
// is long, and ofOne makes it shorter for a message of one master.
const liveTimeout = 10 * time.Second

type liveMasters struct {
	t       *testing.T
	servers []*liveMaster
	locker  *Locker
}

func listenToLiveMasters(t *testing.T, n int, args ...string) *liveMasters {
	t.Helper()
	x := &liveMasters{t: t}
	cfg := Config{Loop: startLoop(t), MasterTimeout: liveTimeout, ClockDrift: 0.01}
	for i := range n {
		m := startLiveMaster(t, args...)
		x.servers = append(x.servers, m)
		cfg.Masters = append(cfg.Masters, Master{Name: fmt.Sprint("live", i+1), Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", m.socket)
		}})
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.locker = l
	t.Cleanup(func() {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		l.Close(gone)
	})
	return x
}

// each runs a command on the masters, counted from 1; none: on all.
func (x *liveMasters) each(masters []int, args ...string) {
	x.t.Helper()
	for i, m := range x.servers {
		for _, n := range masters {
			if n == i+1 {
				m.must(args...)
			}
		}
		if masters == nil {
			m.must(args...)
		}
	}
}

// liveEvents is a subscriber that gets its events through a channel.
func (x *liveMasters) subscriber() (*notify.Subscriber, <-chan string) {
	events := make(chan string, 1000)
	s := x.locker.Subscriber(func(e notify.Event) { events <- eventWord(e) })
	x.t.Cleanup(s.Close)
	return s, events
}

// waitFor waits for word. Before it only events among others may come.
func waitFor(t *testing.T, events <-chan string, word string, others ...string) {
	t.Helper()
	deadline := time.After(livePatience)
	for {
		select {
		case got := <-events:
			if got == word {
				return
			}
			allowed := false
			for _, other := range others {
				allowed = allowed || got == other
			}
			if !allowed {
				t.Errorf("heard %q while waiting for %q", got, word)
			}
		case <-deadline:
			t.Fatalf("%q was not heard", word)
		}
	}
}

// ofOne publishes a message on one master, and waits until it is reported without the others.
func (x *liveMasters) ofOne(events <-chan string, master int, payload string) {
	x.t.Helper()
	x.waitsFor(liveTimeout/20, master)
	x.each([]int{master}, "PUBLISH", "chan", payload)
	waitFor(x.t, events, "chan:"+payload)
	x.waitsFor(liveTimeout, master)
}

// waitsFor changes the time for which a message waits. The change of a key on one master makes the
// Hub look at the time.
func (x *liveMasters) waitsFor(timeout time.Duration, master int) {
	x.t.Helper()
	cfg := *x.locker.settings()
	cfg.MasterTimeout = timeout
	if err := x.locker.Reload(x.t.Context(), cfg); err != nil {
		x.t.Fatal(err)
	}
	s, events := x.subscriber()
	s.Track(x.t.Context(), "look")
	x.each([]int{master}, "SET", "look", "now")
	waitFor(x.t, events, "key look", "any")
	s.Close()
}

// nothingBefore publishes a last message and expects no other before it.
func (x *liveMasters) nothingBefore(events <-chan string, payload string) {
	x.t.Helper()
	x.each(nil, "PUBLISH", "chan", payload)
	waitFor(x.t, events, "chan:"+payload)
}

func TestLiveMessages(t *testing.T) {
	t.Parallel()
	x := listenToLiveMasters(t, 5)
	s, events := x.subscriber()
	s.Subscribe(t.Context(), "chan")
	release := "redis.call('del', KEYS[1]); return redis.call('publish', 'chan', 'free')"
	x.each(nil, "EVAL", release, "1", "k")
	x.each(nil, "EVAL", release, "1", "k")
	waitFor(t, events, "chan:free")
	waitFor(t, events, "chan:free")
	x.nothingBefore(events, "first")
	x.ofOne(events, 4, "free")
	x.nothingBefore(events, "second")
	s.PSubscribe(t.Context(), "ch[a-b]n")
	s.Unsubscribe("chan")
	x.each([]int{1, 2, 5}, "PUBLISH", "chan", "by pattern")
	waitFor(t, events, "ch[a-b]n>chan:by pattern")
}

func TestLiveKeyChanges(t *testing.T) {
	t.Parallel()
	x := listenToLiveMasters(t, 5, "--enable-debug-command", "local")
	s, events := x.subscriber()
	s.Track(t.Context(), "k", "last1", "last2", "last3", "last4", "last5")
	happens := func(what string, masters []int, args ...string) {
		t.Helper()
		x.each(masters, args...)
		waitFor(t, events, "key k")
		x.drain(events)
	}
	x.each(nil, "DEBUG", "SET-ACTIVE-EXPIRE", "0") // it must not end while the write's events are dropped
	happens("a write", nil, "SET", "k", "v", "PX", "1")
	happens("its end, by itself", nil, "DEBUG", "SET-ACTIVE-EXPIRE", "1")
	happens("a script's write", []int{1, 2, 3}, "EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k")
	happens("a script's DEL", nil, "EVAL", "return redis.call('del', KEYS[1])", "1", "k")
	happens("a push in a minority", []int{5}, "RPUSH", "k", "v")
	x.servers[0].must("SELECT", "3")
	happens("another database", []int{1}, "SET", "k", "v")
	x.each(nil, "FLUSHALL")
	waitFor(t, events, "any", "key k")
}

// drain drops what may follow an event, which is the same event from other masters. Changes are
// reported in the order of their first report, and each of these keys changes on one master. So a
// report of the earlier event by that master comes before it.
func (x *liveMasters) drain(events <-chan string) {
	x.t.Helper()
	last := map[string]bool{}
	for i := range x.servers {
		name := fmt.Sprint("last", i+1)
		x.each([]int{i + 1}, "SET", name, "v")
		last["key "+name] = true
	}
	for deadline := time.After(livePatience); len(last) > 0; {
		select {
		case got := <-events:
			delete(last, got)
		case <-deadline:
			x.t.Fatalf("a change was not heard: %v", last)
		}
	}
}

func TestLiveListenerThatIsKilled(t *testing.T) {
	t.Parallel()
	x := listenToLiveMasters(t, 5)
	s, events := x.subscriber()
	s.Subscribe(t.Context(), "chan")
	s.Track(t.Context(), "k")
	x.each([]int{2}, "CLIENT", "KILL", "TYPE", "pubsub")
	waitFor(t, events, "any") // it listens again
	x.nothingBefore(events, "here")
	x.each([]int{1, 2, 3}, "CLIENT", "KILL", "TYPE", "pubsub")
	waitFor(t, events, "gap", "any")
}

func TestLiveMastersThatDie(t *testing.T) {
	t.Parallel()
	x := listenToLiveMasters(t, 5)
	s, events := x.subscriber()
	s.Subscribe(t.Context(), "chan")
	x.servers[0].conn.ask(resp.AppendCommand(nil, "CLIENT", "ID"), 1)
	shutdown := func(m int) {
		x.servers[m-1].conn.Send(resp.AppendCommand(nil, "SHUTDOWN", "NOSAVE"))
	}
	shutdown(1)
	shutdown(2)
	x.each([]int{3, 4, 5}, "PUBLISH", "chan", "three left")
	waitFor(t, events, "chan:three left")
	x.ofOne(events, 3, "one told")
}

// A server that has no HELLO: messages, but no changes of keys.
func TestLiveMastersWithoutRESP3(t *testing.T) {
	t.Parallel()
	x := listenToLiveMasters(t, 3, "--rename-command", "HELLO", "")
	if !x.locker.TrackingAvailable() {
		t.Error("a server is taken for old before it was asked")
	}
	s, events := x.subscriber()
	s.Subscribe(t.Context(), "chan")
	patience, cancel := context.WithTimeout(t.Context(), liveTimeout)
	defer cancel()
	s.Track(patience, "k")
	if patience.Err() != nil {
		t.Error("Track waits for masters that cannot track")
	}
	if x.locker.TrackingAvailable() {
		t.Error("tracking is said to be available")
	}
	x.each(nil, "PUBLISH", "chan", "free")
	waitFor(t, events, "chan:free")
}

func TestLiveMastersWithPassword(t *testing.T) {
	t.Parallel()
	x := listenToLiveMasters(t, 1, "--rename-command", "CONFIG", "CONFIG")
	x.each(nil, "CONFIG", "SET", "requirepass", "secret")
	cfg := *x.locker.settings()
	cfg.Masters = slices.Clone(cfg.Masters)
	for i := range cfg.Masters {
		cfg.Masters[i].Password = "secret"
	}
	if err := x.locker.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s, events := x.subscriber()
	s.Subscribe(t.Context(), "chan")
	s.Track(t.Context(), "k")
	x.nothingBefore(events, "free")
	x.each(nil, "SET", "k", "v")
	waitFor(t, events, "key k")
}
