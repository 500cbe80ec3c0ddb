package notify

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/stream"
)

// Event is one thing that a Subscriber hears. Subscribers share its slices: they must not
// change them. The slices are valid during the call only.
type Event struct {
	Kind    EventKind
	Channel []byte // of a message
	Pattern []byte // EventPatternMessage: the pattern that the channel matched
	Payload []byte // of a message
	Key     []byte // EventChanged: the key; nil: any key may have changed
}

// EventKind says what an Event reports.
type EventKind uint8

const (
	// EventMessage: a message was published on the masters in a subscribed channel. It
	// comes once, when a quorum of masters has published the message. If that takes
	// longer than MasterTimeout, it comes once before and once more after.
	EventMessage EventKind = iota
	// EventPatternMessage is EventMessage for a subscribed pattern.
	EventPatternMessage
	// EventChanged: a tracked key was written or deleted, or has expired, in some
	// database. It may come more often than that.
	EventChanged
	// EventGap: the Hub listened to too few masters for a while, so messages may have
	// been missed. From now on messages are heard again. It comes for channels and
	// patterns only. For keys an EventChanged without key comes instead.
	EventGap
)

// Subscriber hears what happens on the masters. Several goroutines may call its methods.
type Subscriber struct {
	hub    *Hub
	hear   func(Event)
	closed atomic.Bool

	// Guarded by hub.mu:
	wanted   map[want]struct{}
	informed bool // a call of Track has returned since the feed began
	exposed  bool // messages may have been missed, and no EventGap was sent
	pending  []Event
	bytes    int           // of pending
	drained  chan struct{} // closed when what calls hear has ended; nil if nothing does
}

// A want is one channel, pattern, key or prefix that a Subscriber wants.
type want struct {
	feed  *feed
	loose bool // a pattern or a prefix
	name  string
}

// Subscriber makes a Subscriber that hears nothing yet. hear is called with one event at
// a time. It must neither block nor call Close.
func (l *Hub) Subscriber(hear func(Event)) *Subscriber {
	return &Subscriber{hub: l, hear: hear, wanted: map[want]struct{}{}}
}

// Subscribe begins to hear messages in channels. It returns at once if the Hub hears those of a
// quorum already. Else it waits for the answers of all connected masters, after MasterTimeout only for a
// quorum, and at the latest until a stall or until ctx ends. If there is no quorum, an EventGap
// follows once there is one.
func (s *Subscriber) Subscribe(ctx context.Context, channels ...string) {
	s.want(ctx, &s.hub.messages, false, channels)
}

// Unsubscribe ends Subscribe for these channels. Messages that arrived before may still
// be heard.
func (s *Subscriber) Unsubscribe(channels ...string) { s.leave(&s.hub.messages, false, channels) }

// PSubscribe is Subscribe for channels that match Redis's glob patterns.
func (s *Subscriber) PSubscribe(ctx context.Context, patterns ...string) {
	s.want(ctx, &s.hub.messages, true, patterns)
}

// PUnsubscribe ends PSubscribe for these patterns.
func (s *Subscriber) PUnsubscribe(patterns ...string) { s.leave(&s.hub.messages, true, patterns) }

// Track begins to hear changes of keys, in any database, until Untrack. It returns as
// Subscribe does. If a master was unreachable or connects later, an EventChanged without
// key comes.
func (s *Subscriber) Track(ctx context.Context, keys ...string) {
	s.want(ctx, &s.hub.changes, false, keys)
}

// Untrack ends Track for these keys.
func (s *Subscriber) Untrack(keys ...string) { s.leave(&s.hub.changes, false, keys) }

// TrackPrefix is Track for all keys that begin with prefix. The empty prefix means all
// keys.
func (s *Subscriber) TrackPrefix(ctx context.Context, prefix string) {
	s.want(ctx, &s.hub.changes, true, []string{prefix})
}

// UntrackPrefix ends TrackPrefix for this prefix.
func (s *Subscriber) UntrackPrefix(prefix string) { s.leave(&s.hub.changes, true, []string{prefix}) }

// Close ends the Subscriber. After Close has returned, hear is not called any more.
func (s *Subscriber) Close() {
	l := s.hub
	s.closed.Store(true)
	l.mu.Lock()
	for w := range s.wanted {
		l.leave(s, w)
	}
	s.pending, s.bytes = nil, 0
	drained := s.drained
	l.mu.Unlock()
	if drained != nil {
		l.loop.Wait(loop.Forever, drained)
	}
}

func (s *Subscriber) want(ctx context.Context, f *feed, loose bool, names []string) {
	l := s.hub
	l.mu.Lock()
	if s.closed.Load() || len(names) == 0 {
		l.mu.Unlock()
		return
	}
	if f.changes && !f.open {
		s.informed = false // the answers to this call are not news
	}
	for _, name := range names {
		l.join(s, want{f, loose, strings.Clone(name)})
	}
	decided := f.decided
	l.mu.Unlock()
	l.loop.Wait(l.stall(), decided, ctx.Done())
	l.mu.Lock()
	defer l.mu.Unlock()
	s.informed = s.informed || f.changes
	// Messages published before this moment were not promised.
	s.exposed = s.exposed || !f.changes && !f.covered()
}

// wants tells, with hub.mu held, whether the subscriber wants something of a feed.
func (s *Subscriber) wants(f *feed) bool {
	for w := range s.wanted {
		if w.feed == f {
			return true
		}
	}
	return false
}

func (s *Subscriber) leave(f *feed, loose bool, names []string) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, name := range names {
		s.hub.leave(s, want{f, loose, name})
	}
	// rule: who wants no messages any more has missed none
	s.exposed = s.exposed && s.wants(&s.hub.messages)
}

// Limits of the events that wait for a subscriber whose hear is slow. Beyond them the
// subscriber is told that it has missed something.
const (
	maxPending      = 1 << 14
	maxPendingBytes = 16 << 20
)

// tell queues an event, with hub.mu held.
func (s *Subscriber) tell(e Event) {
	if s.closed.Load() || s.hub.closed {
		return
	}
	s.pending = append(s.pending, e)
	s.bytes += len(e.Payload)
	if len(s.pending) > maxPending || s.bytes > maxPendingBytes {
		s.overflow()
	}
	if s.drained == nil {
		drained := make(chan struct{})
		s.drained = drained
		s.hub.loop.Spawn(&s.hub.running, func() {
			defer close(drained)
			s.drain()
		})
	}
}

// overflow replaces the waiting events by those that report a loss.
func (s *Subscriber) overflow() {
	messages := slices.ContainsFunc(s.pending, func(e Event) bool { return e.Kind != EventChanged })
	changes := slices.ContainsFunc(s.pending, func(e Event) bool { return e.Kind == EventChanged })
	s.pending, s.bytes = nil, 0
	if messages {
		s.pending = append(s.pending, Event{Kind: EventGap})
	}
	if changes {
		s.pending = append(s.pending, Event{Kind: EventChanged})
	}
}

// drain calls hear, with no lock held, until no event waits. A panic of hear costs its event.
func (s *Subscriber) drain() {
	for {
		s.hub.mu.Lock()
		events := s.pending
		s.pending, s.bytes = nil, 0
		if len(events) == 0 {
			s.drained = nil
			s.hub.mu.Unlock()
			return
		}
		s.hub.mu.Unlock()
		for _, e := range events {
			if !s.closed.Load() {
				stream.Contained(s.hub.log, func() { s.hear(e) })
			}
		}
	}
}
