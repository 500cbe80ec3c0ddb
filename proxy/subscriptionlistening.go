package proxy

import (
	"context"
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// What one piece of mail, and one name that is subscribed to, takes beside its
// bytes, roughly.
const (
	mailOverhead = 200
	nameOverhead = 300
)

// listening is one session's part in what the masters tell: which channels,
// patterns and keys the client wants to hear of, and the mail that waits for
// its turn on the client's socket. A session without subscriptions and without
// tracking has none. Its one goroutine writes the mail; close waits for it.
//
// Who holds the client's writing side alone changes what is confirmed and
// which protocol the client reads, together with the bytes that tell the
// client so. So nothing comes before a SUBSCRIBE's confirmation nor after an
// UNSUBSCRIBE's.
type listening struct {
	session *session
	masters subscriber
	ctx     context.Context // until close
	cancel  context.CancelFunc

	// The session's own: what the masters were asked for.
	asked       [2]map[string]struct{} // by family
	askedBytes  int                    // what those take of the server's memory
	askedKeys   map[string]struct{}
	askedPrefix map[string]struct{}

	version wire.Version // changes hands with the client's writing side

	// outdatedAt: the upstream was away when subscriptions were confirmed, so that
	// it does not know them. Once it has been opened so often, for anybody, messages
	// may be published there. 0: it knows them.
	outdatedAt atomic.Int64

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

func newListening(s *session) *listening {
	l := &listening{
		session:     s,
		asked:       [2]map[string]struct{}{{}, {}},
		askedKeys:   make(map[string]struct{}),
		askedPrefix: make(map[string]struct{}),
		version:     s.client.version,
		names:       [2]map[string]bool{{}, {}},
		delivery:    make(chan struct{}, 1),
		done:        make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.server.cfg.metrics.clientListens(1)
	l.masters = s.server.cfg.subscribes(l.hear)
	go l.deliverMail()
	return l
}

// close returns when the masters are not heard any more and nothing more of it
// is written.
func (l *listening) close() {
	l.masters.Close()
	l.cancel()
	l.mu.Lock()
	l.closed = true
	l.session.server.memory.Release(l.waiting + l.askedBytes + l.trackedBytes)
	l.mail, l.waiting, l.askedBytes, l.trackedBytes = nil, 0, 0, 0
	l.mu.Unlock()
	close(l.delivery)
	<-l.done
	l.session.server.cfg.metrics.clientListens(-1)
}

// hear takes in what the masters tell. It is called from their goroutines and
// does not block.
func (l *listening) hear(e redlock.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case redlock.EventMessage:
		if _, wanted := l.names[wire.FamilyChannel][string(e.Channel)]; wanted {
			l.post(newNotice(noticeMessage, e.Channel, e.Payload))
		}
	case redlock.EventPatternMessage:
		if _, wanted := l.names[wire.FamilyPattern][string(e.Pattern)]; wanted && !isNotification(e.Channel) {
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

// isNotification finds what a master may tell of its own keyspace.
func isNotification(channel []byte) bool {
	return len(channel) >= len(notificationPrefix) && string(channel[:len(notificationPrefix)]) == notificationPrefix
}

// post puts a notice into the mail. The caller holds mu.
func (l *listening) post(n notice) {
	server, size := l.session.server, n.size()
	switch {
	case l.closed:
		return
	case int64(l.waiting+size) > server.settings().limits.Output:
		l.overflow(limitOutput)
		return
	case !server.memory.Reserve(size):
		l.overflow(limitMemory)
		return
	}
	l.waiting += size
	l.mail = append(l.mail, n)
	select {
	case l.delivery <- struct{}{}:
	default:
	}
}

// overflow ends the session at once, as Redis does with a subscriber that does
// not read: one that misses messages must know. The caller holds mu; closing a
// socket does not block.
func (l *listening) overflow(reached limitName) {
	l.session.server.cfg.metrics.limitReached(reached)
	l.closed = true
	l.session.server.memory.Release(l.waiting)
	l.mail, l.waiting = nil, 0
	l.session.server.cfg.metrics.listenerEnded(listenerOverflow)
	l.session.server.cfg.log.Warn("a subscribed client that does not read its messages is cut off")
	l.session.cutOff()
}

// expect lets messages for a name wait for its confirmation.
func (l *listening) expect(of wire.Family, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.names[of][name]; !known {
		l.names[of][name] = false
	}
}

// confirm takes note of what the client is being told. The caller holds the
// client's writing side.
func (l *listening) confirm(c wire.Confirmation) {
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
func (l *listening) counted(before, after bool) {
	switch {
	case after && !before:
		l.known++
	case before && !after:
		l.known--
	}
}

// confirmed lists what the client knows to be subscribed to.
func (l *listening) confirmed(of wire.Family) []string {
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

// count is how many subscriptions a confirmation tells of: channels and
// patterns together. A nil listening has none.
func (l *listening) count() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// unheard lists what the masters were asked for and the client no longer
// wants, and forgets it.
func (l *listening) unheard(of wire.Family) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gone []string
	for name := range l.asked[of] {
		if _, wanted := l.names[of][name]; !wanted {
			gone = append(gone, name)
			delete(l.asked[of], name)
			l.askedBytes -= len(name) + nameOverhead
			l.session.server.memory.Release(len(name) + nameOverhead)
		}
	}
	return gone
}

// idle: nothing is wanted of the masters.
func (l *listening) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names[wire.FamilyChannel])+len(l.names[wire.FamilyPattern]) == 0 && l.tracked == nil
}

// subscribed: the client may be silent for long, waiting for messages.
func (l *listening) subscribed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names[wire.FamilyChannel])+len(l.names[wire.FamilyPattern]) > 0
}
