package pubsub

import (
	"context"
	"sync"

	"redlock-proxy/proxy/conn"
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

// listener holds the channels, patterns and keys that one session's client wants from
// the masters, and the outbox: the pushes that wait to be written to the client. A
// session without subscriptions and without tracking has no listener. The listener's task
// writes the outbox, and rests while it is empty; Close waits for it.
//
// The confirmed names and the version of the protocol change only under the client's
// write lock, together with the bytes that say so to the client. So the client gets no
// message before the confirmation of a SUBSCRIBE, and none after that of an UNSUBSCRIBE.
type listener struct {
	host    Host
	masters Source
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

	mu        sync.Mutex
	names     [2]map[string]bool // by family; true if confirmed to the client
	confirmed int                // the number of confirmed names of both families
	tracked   *trackedKeys       // nil if the client tracks nothing
	outbox    []item
	waiting   int // the bytes of the outbox, with the items that are being written
	closed    bool

	trackedBytes int // the memory for tracked, askedKeys and askedPrefix

	task *loop.Task // is unparked when the outbox is not empty
	done chan struct{}
}

// startListener starts a listener to what subscribe opens. out is the client's, and version
// what the client reads now. The caller must call Close.
func startListener(ctx context.Context, host Host, subscribe Subscribe, out *conn.Writer, memory *conn.Budget, version wire.Version) *listener {
	l := &listener{
		host:        host,
		out:         out,
		memory:      memory,
		asked:       [2]map[string]struct{}{{}, {}},
		askedKeys:   make(map[string]struct{}),
		askedPrefix: make(map[string]struct{}),
		version:     version,
		names:       [2]map[string]bool{{}, {}},
		done:        make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(ctx)
	if l.task = out.Loop().Go(l.writeOutbox); l.task == nil {
		close(l.done) // the process ends
	}
	l.masters = subscribe(l.onEvent)
	return l
}

// Close stops the listener. It returns when no more events arrive and nothing more is
// written to the client. The caller must have left the loop.
func (l *listener) Close() {
	l.masters.Close()
	l.cancel()
	l.mu.Lock()
	l.closed = true
	l.memory.Release(l.waiting + l.askedBytes + l.trackedBytes)
	l.outbox, l.waiting, l.askedBytes, l.trackedBytes = nil, 0, 0, 0
	l.mu.Unlock()
	l.task.Unpark()
	<-l.done
}

// onEvent handles an event of the masters. The Source calls it from its own goroutines, so
// it does not block.
func (l *listener) onEvent(e redlock.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case redlock.EventMessage:
		if _, wanted := l.names[wire.FamilyChannel][string(e.Channel)]; wanted {
			l.enqueue(newItem(itemMessage, e.Channel, e.Payload))
		}
	case redlock.EventPatternMessage:
		if _, wanted := l.names[wire.FamilyPattern][string(e.Pattern)]; wanted && !isNotification(e.Channel) {
			l.enqueue(newItem(itemPatternMessage, e.Pattern, e.Channel, e.Payload))
		}
	case redlock.EventChanged:
		l.onChange(e.Key)
	case redlock.EventGap:
		l.onChange(nil)
		if l.subscribes() {
			l.enqueue(item{kind: itemGap})
		}
	}
}

// enqueue puts an item into the outbox. If a limit is reached, it ends the session instead.
// The caller holds mu.
func (l *listener) enqueue(n item) {
	size := n.size()
	switch {
	case l.closed:
		return
	case int64(l.waiting+size) > l.host.OutputLimit():
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
func (l *listener) overflow(memory bool) {
	l.closed = true
	l.memory.Release(l.waiting)
	l.outbox, l.waiting = nil, 0
	l.host.Overflow(memory)
}

// Asks tells whether the masters were asked for a channel or pattern.
func (l *listener) Asks(of wire.Family, name string) bool {
	_, asked := l.asked[of][name]
	return asked
}

// Asked returns the number of channels and patterns for which the masters were asked.
func (l *listener) Asked() int {
	return len(l.asked[wire.FamilyChannel]) + len(l.asked[wire.FamilyPattern])
}

// Expect makes messages for a name wait until the name is confirmed. It returns true if
// the caller must ask the masters for the name. If Expect returned false, they were
// asked before.
func (l *listener) Expect(of wire.Family, name string) (missing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.names[of][name]; !known {
		l.names[of][name] = false
	}
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
func (l *listener) Ask(ctx context.Context, of wire.Family, names ...string) {
	if of == wire.FamilyPattern {
		l.masters.PSubscribe(ctx, names...)
		return
	}
	l.masters.Subscribe(ctx, names...)
}

// UnsubscribeUnwanted ends the subscriptions at the masters that the client has ended. It
// returns true if the client needs nothing more from the masters. The caller must have
// passed every confirmation to Confirm before.
func (l *listener) UnsubscribeUnwanted() (idle bool) {
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
func (l *listener) Speak(version wire.Version) { l.version = version }

// Confirm notes a confirmation that the caller is writing to the client. The caller
// holds the client's write lock.
func (l *listener) Confirm(c wire.Confirmation) {
	if c.Family == wire.FamilyShard {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names[c.Family]
	if !c.Adds && len(c.Names) == 0 {
		for _, confirmed := range names {
			l.updateConfirmed(confirmed, false)
		}
		clear(names)
	}
	for _, name := range c.Names {
		confirmed, known := names[name]
		switch {
		case c.Refused && !confirmed, !c.Refused && !c.Adds:
			l.updateConfirmed(confirmed, false)
			delete(names, name)
		case known && c.Adds:
			l.updateConfirmed(confirmed, true)
			names[name] = true
		}
	}
}

// updateConfirmed updates the number of confirmed names. before and after tell whether one name
// was and is confirmed. The caller holds mu.
func (l *listener) updateConfirmed(before, after bool) {
	switch {
	case after && !before:
		l.confirmed++
	case before && !after:
		l.confirmed--
	}
}

// Confirmed returns the names whose subscriptions are confirmed to the client.
func (l *listener) Confirmed(of wire.Family) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name, confirmed := range l.names[of] {
		if confirmed {
			names = append(names, name)
		}
	}
	return names
}

// Count returns the number of subscriptions as in a confirmation: channels and patterns
// together. It returns 0 for a nil listener.
func (l *listener) Count() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirmed
}

// takeUnwanted returns the names for which the masters were asked and which the client no
// longer wants. It forgets that the masters were asked, and gives the memory back.
func (l *listener) takeUnwanted(of wire.Family) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone []string
	for name := range l.asked[of] {
		if _, wanted := l.names[of][name]; !wanted {
			gone = append(gone, name)
			delete(l.asked[of], name)
			l.askedBytes -= len(name) + NameOverhead
			l.memory.Release(len(name) + NameOverhead)
		}
	}
	return gone
}

// idle tells whether the client needs nothing from the masters.
func (l *listener) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.subscribes() && l.tracked == nil
}

// Subscribed tells whether the client has subscriptions. Such a client may be silent for
// a long time while it waits for messages.
func (l *listener) Subscribed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subscribes()
}

// subscribes is Subscribed for a caller that holds mu.
func (l *listener) subscribes() bool {
	return len(l.names[wire.FamilyChannel])+len(l.names[wire.FamilyPattern]) > 0
}
