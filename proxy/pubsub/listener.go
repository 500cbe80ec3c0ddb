package pubsub

import (
	"context"
	"sync"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// What one piece of mail, and one name that is subscribed to, takes beside its
// bytes, roughly.
const (
	mailOverhead = 200
	NameOverhead = 300
)

// A Listener is one session's part in what the masters tell: which channels,
// patterns and keys the client wants to hear of, and the mail that waits for
// its turn on the client's socket. A session without subscriptions and without
// tracking has none. Its one goroutine writes the mail; Close waits for it.
//
// Who holds the client's writing side alone changes what is confirmed and
// which protocol the client reads, together with the bytes that tell the
// client so. So nothing comes before a SUBSCRIBE's confirmation nor after an
// UNSUBSCRIBE's.
type Listener struct {
	host    Host
	masters Source
	out     *conn.Writer // the client's writing side
	memory  *conn.Budget
	ctx     context.Context // until Close
	cancel  context.CancelFunc

	// The session's own: what the masters were asked for.
	asked       [2]map[string]struct{} // by family
	askedBytes  int                    // what those take of the server's memory
	askedKeys   map[string]struct{}
	askedPrefix map[string]struct{}

	version wire.Version // changes hands with the client's writing side

	mu      sync.Mutex
	names   [2]map[string]bool // by family; true: confirmed to the client
	known   int                // how many of both are confirmed
	tracked *trackedKeys       // nil: the client tracks nothing
	mail    []notice
	waiting int // bytes of mail, until it is written
	closed  bool

	trackedBytes int // what tracked keys take of the server's memory, and what the masters are asked of them

	delivery chan struct{} // signalled when there is mail
	done     chan struct{}
}

// Options say what a listener works with.
type Options struct {
	Source  Subscribe
	Out     *conn.Writer
	Memory  *conn.Budget
	Version wire.Version
}

// Listen begins to listen. Whoever calls it calls Close.
func Listen(ctx context.Context, host Host, o Options) *Listener {
	l := &Listener{
		host:        host,
		out:         o.Out,
		memory:      o.Memory,
		asked:       [2]map[string]struct{}{{}, {}},
		askedKeys:   make(map[string]struct{}),
		askedPrefix: make(map[string]struct{}),
		version:     o.Version,
		names:       [2]map[string]bool{{}, {}},
		delivery:    make(chan struct{}, 1),
		done:        make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.masters = o.Source(l.hear)
	go l.deliverMail()
	return l
}

// Close returns when the masters are not heard any more and nothing more of it
// is written.
func (l *Listener) Close() {
	l.masters.Close()
	l.cancel()
	l.mu.Lock()
	l.closed = true
	l.memory.Release(l.waiting + l.askedBytes + l.trackedBytes)
	l.mail, l.waiting, l.askedBytes, l.trackedBytes = nil, 0, 0, 0
	l.mu.Unlock()
	close(l.delivery)
	<-l.done
}

// hear takes in what the masters tell. It is called from their goroutines and
// does not block.
func (l *Listener) hear(e redlock.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case redlock.EventMessage:
		if _, wanted := l.names[wire.FamilyChannel][string(e.Channel)]; wanted {
			l.post(newNotice(noticeMessage, e.Channel, e.Payload))
		}
	case redlock.EventPatternMessage:
		if _, wanted := l.names[wire.FamilyPattern][string(e.Pattern)]; wanted && !IsNotification(e.Channel) {
			l.post(newNotice(noticePatternMessage, e.Pattern, e.Channel, e.Payload))
		}
	case redlock.EventChanged:
		l.hearChange(e.Key)
	case redlock.EventGap:
		l.hearChange(nil)
		if len(l.names[wire.FamilyChannel])+len(l.names[wire.FamilyPattern]) > 0 {
			l.post(notice{kind: noticeGap})
		}
	}
}

// post puts a notice into the mail. The caller holds mu.
func (l *Listener) post(n notice) {
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
	l.mail = append(l.mail, n)
	select {
	case l.delivery <- struct{}{}:
	default:
	}
}

// overflow ends the session at once: a client that misses messages must know. The
// caller holds mu.
func (l *Listener) overflow(memory bool) {
	l.closed = true
	l.memory.Release(l.waiting)
	l.mail, l.waiting = nil, 0
	l.host.Overflow(memory)
}

// Asks tells whether the masters were asked for a name.
func (l *Listener) Asks(of wire.Family, name string) bool {
	_, asked := l.asked[of][name]
	return asked
}

// Asked is how many channels and patterns the masters were asked for.
func (l *Listener) Asked() int {
	return len(l.asked[wire.FamilyChannel]) + len(l.asked[wire.FamilyPattern])
}

// Expect lets messages for a name wait for its confirmation, and tells whether the
// masters are yet to be asked for it.
func (l *Listener) Expect(of wire.Family, name string) (missing bool) {
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

// Ask asks the masters for names that Expect found missing, and returns when they
// are subscribed to or ctx has ended.
func (l *Listener) Ask(ctx context.Context, of wire.Family, names ...string) {
	if of == wire.FamilyPattern {
		l.masters.PSubscribe(ctx, names...)
		return
	}
	l.masters.Subscribe(ctx, names...)
}

// LeaveUnheard ends at the masters what the client has ended, and tells whether
// nothing is wanted of them any more. Every confirmation has been seen.
func (l *Listener) LeaveUnheard() (idle bool) {
	if gone := l.unheard(wire.FamilyChannel); len(gone) > 0 {
		l.masters.Unsubscribe(gone...)
	}
	if gone := l.unheard(wire.FamilyPattern); len(gone) > 0 {
		l.masters.PUnsubscribe(gone...)
	}
	return l.idle()
}

// Speak says which protocol the client reads from here on. The caller holds the
// client's writing side.
func (l *Listener) Speak(version wire.Version) { l.version = version }

// Confirm takes note of what the client is being told. The caller holds the
// client's writing side.
func (l *Listener) Confirm(c wire.Confirmation) {
	if c.Family == wire.FamilyShard {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	names := l.names[c.Family]
	if !c.Adds && len(c.Names) == 0 {
		for _, confirmed := range names {
			l.counted(confirmed, false)
		}
		clear(names)
	}
	for _, name := range c.Names {
		confirmed, known := names[name]
		switch {
		case c.Refused && !confirmed, !c.Refused && !c.Adds:
			l.counted(confirmed, false)
			delete(names, name)
		case known && c.Adds:
			l.counted(confirmed, true)
			names[name] = true
		}
	}
}

// counted keeps count of what is confirmed. The caller holds mu.
func (l *Listener) counted(before, after bool) {
	switch {
	case after && !before:
		l.known++
	case before && !after:
		l.known--
	}
}

// Confirmed lists what the client knows to be subscribed to.
func (l *Listener) Confirmed(of wire.Family) []string {
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

// Count is how many subscriptions a confirmation tells of: channels and
// patterns together. A nil Listener has none.
func (l *Listener) Count() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// unheard lists what the masters were asked for and the client no longer
// wants, and forgets it.
func (l *Listener) unheard(of wire.Family) []string {
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

// idle: nothing is wanted of the masters.
func (l *Listener) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names[wire.FamilyChannel])+len(l.names[wire.FamilyPattern]) == 0 && l.tracked == nil
}

// Subscribed: the client may be silent for long, waiting for messages.
func (l *Listener) Subscribed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names[wire.FamilyChannel])+len(l.names[wire.FamilyPattern]) > 0
}
