package pubsub

import (
	"bytes"
	"context"
	"sync"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// The memory of one item in the outbox, and of one subscribed name, besides the bytes
// that they hold. Both are estimates.
const (
	itemOverhead = 200
	NameOverhead = 300
)

// A Listener holds the channels, patterns and keys that one session's client wants from
// the masters, and the outbox: the pushes that wait to be written to the client. A
// session without subscriptions and without tracking has no Listener. The Listener's task
// writes the outbox, and rests while it is empty; Close waits for it.
//
// The confirmed names and the version of the protocol change only under the client's
// write lock, together with the bytes that say so to the client. So the client gets no
// message before the confirmation of a SUBSCRIBE, and none after that of an UNSUBSCRIBE.
type Listener struct {
	*session.Names
	session *session.Session
	masters Source
	peek    Peek
	out     *conn.Writer // the client's
	memory  *conn.Budget
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	// The masters were asked for these. Only the session's goroutine uses them.
	asked       [2]map[string]struct{} // by family
	askedBytes  int                    // the memory for asked, taken from the server's
	askedKeys   map[string]struct{}
	askedPrefix map[string]struct{}

	version wire.Version // guarded by the client's write lock

	mu      sync.Mutex
	tracked *trackedKeys // nil if the client tracks nothing
	outbox  []item
	waiting int // the bytes of the outbox, with the items that are being written
	closed  bool

	trackedBytes int // the memory for tracked, askedKeys and askedPrefix

	task *loop.Task // is unparked when the outbox is not empty
	done chan struct{}
}

// Listen starts a Listener for a session's client, to what subscribe opens. version is what the client reads
// now. The caller must call Close.
func Listen(s *session.Session, subscribe Subscribe, peek Peek, version wire.Version) *Listener {
	l := &Listener{
		Names:       session.NewNames(),
		session:     s,
		peek:        peek,
		out:         s.Writer(),
		memory:      s.Env.Budget,
		asked:       [2]map[string]struct{}{{}, {}},
		askedKeys:   make(map[string]struct{}),
		askedPrefix: make(map[string]struct{}),
		version:     version,
		done:        make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(s.Context())
	if l.task = s.Env.Loop.Go(l.writeOutbox); l.task == nil {
		close(l.done) // the process ends
	}
	l.masters = subscribe(l.onEvent)
	s.SetNames(l.Names)
	s.Env.Metrics.ClientListens(1)
	return l
}

// Close stops the Listener. It returns when no more events arrive and nothing more is
// written to the client. The caller must have left the loop.
func (l *Listener) Close() {
	l.session.SetNames(nil)
	l.masters.Close()
	l.cancel()
	l.mu.Lock()
	l.closed = true
	l.memory.Release(l.waiting + l.askedBytes + l.trackedBytes)
	l.outbox, l.waiting, l.askedBytes, l.trackedBytes = nil, 0, 0, 0
	l.mu.Unlock()
	l.task.Unpark()
	<-l.done
	l.session.Env.Metrics.ClientListens(-1)
}

// onEvent handles an event of the masters. The Source calls it from its own goroutines, so
// it does not block.
func (l *Listener) onEvent(e redlock.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case redlock.EventMessage:
		if wanted, _ := l.Wanted(wire.FamilyChannel, string(e.Channel)); wanted {
			l.enqueue(newItem(itemMessage, e.Channel, e.Payload))
		}
	case redlock.EventPatternMessage:
		if wanted, _ := l.Wanted(wire.FamilyPattern, string(e.Pattern)); wanted && !IsNotification(e.Channel) {
			l.enqueue(newItem(itemPatternMessage, e.Pattern, e.Channel, e.Payload))
		}
	case redlock.EventChanged:
		l.onChange(e.Key)
	case redlock.EventGap:
		l.onChange(nil)
		if l.Any() {
			l.enqueue(item{kind: itemGap})
		}
	}
}

// enqueue puts an item into the outbox. If a limit is reached, it ends the session instead.
// The caller holds mu.
func (l *Listener) enqueue(n item) {
	size := n.size()
	switch {
	case l.closed:
		return
	case int64(l.waiting+size) > l.session.Env.Active.Load().Limits.Output:
		l.overflow(false)
		return
	case !l.memory.Reserve(size):
		l.overflow(true)
		return
	}
	l.waiting += size
	l.outbox = append(l.outbox, n)
	l.task.Unpark()
}

// overflow drops the outbox and ends the session at once, so that the client knows that
// it may miss messages. The caller holds mu.
func (l *Listener) overflow(memory bool) {
	l.closed = true
	l.memory.Release(l.waiting)
	l.outbox, l.waiting = nil, 0
	if memory {
		l.session.End(session.OverflowMemory)
	} else {
		l.session.End(session.Overflow)
	}
}

// Asks tells whether the masters were asked for a channel or pattern.
func (l *Listener) Asks(of wire.Family, name string) bool {
	_, asked := l.asked[of][name]
	return asked
}

// Asked returns the number of channels and patterns for which the masters were asked.
func (l *Listener) Asked() int {
	return len(l.asked[wire.FamilyChannel]) + len(l.asked[wire.FamilyPattern])
}

// Expect makes messages for a name wait until the name is confirmed. It returns true if
// the caller must ask the masters for the name. If Expect returned false, they were
// asked before.
func (l *Listener) Expect(of wire.Family, name string) (missing bool) {
	l.Names.Expect(of, name)
	if l.Asks(of, name) {
		return false
	}
	l.asked[of][name] = struct{}{}
	l.askedBytes += len(name) + NameOverhead
	l.memory.Use(len(name) + NameOverhead)
	return true
}

// Ask asks the masters for names that Expect found missing. It returns when the masters
// have confirmed the subscriptions, or when ctx ends.
func (l *Listener) Ask(ctx context.Context, of wire.Family, names ...string) {
	if of == wire.FamilyPattern {
		l.masters.PSubscribe(ctx, names...)
		return
	}
	l.masters.Subscribe(ctx, names...)
}

// UnsubscribeUnwanted ends the subscriptions at the masters that the client has ended. It
// returns true if the client needs nothing more from the masters. The caller must have
// passed every confirmation to Confirm before.
func (l *Listener) UnsubscribeUnwanted() (idle bool) {
	if gone := l.takeUnwanted(wire.FamilyChannel); len(gone) > 0 {
		l.masters.Unsubscribe(gone...)
	}
	if gone := l.takeUnwanted(wire.FamilyPattern); len(gone) > 0 {
		l.masters.PUnsubscribe(gone...)
	}
	return l.idle()
}

// Speak sets the version of the protocol that the client reads from now on. The caller
// holds the client's write lock.
func (l *Listener) Speak(version wire.Version) { l.version = version }

// takeUnwanted returns the names for which the masters were asked and which the client no
// longer wants. It forgets that the masters were asked, and gives the memory back.
func (l *Listener) takeUnwanted(of wire.Family) []string {
	var gone []string
	for name := range l.asked[of] {
		if wanted, _ := l.Wanted(of, name); !wanted {
			gone = append(gone, name)
			delete(l.asked[of], name)
			l.askedBytes -= len(name) + NameOverhead
			l.memory.Release(len(name) + NameOverhead)
		}
	}
	return gone
}

// idle tells whether the client needs nothing from the masters.
func (l *Listener) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.Any() && l.tracked == nil
}

// Subscribe opens a Source that calls onEvent with each event on the masters.
type Subscribe func(onEvent func(redlock.Event)) Source

// Peek runs a command on one key on the masters, for a Listener's own use.
type Peek func(ctx context.Context, db int, command, key string) (reply []byte)

// Source reports events on the masters. In service it is a redlock.Subscriber, whose
// documentation says what a caller may rely on.
type Source interface {
	Subscribe(ctx context.Context, channels ...string)
	Unsubscribe(channels ...string)
	PSubscribe(ctx context.Context, patterns ...string)
	PUnsubscribe(patterns ...string)
	Track(ctx context.Context, keys ...string)
	Untrack(keys ...string)
	TrackPrefix(ctx context.Context, prefix string)
	UntrackPrefix(prefix string)
	Close()
}

// IsNotification tells whether a channel is one of keyspace notifications. Clients get
// those of the upstream only.
func IsNotification(channel []byte) bool { return bytes.HasPrefix(channel, []byte("__key")) }
