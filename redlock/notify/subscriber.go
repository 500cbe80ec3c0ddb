package notify

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"redlock-proxy/redlock/stream"
)

// Event is one thing that a Subscriber hears. Its slices are shared with other
// subscribers: they must not be changed, and are valid during the call only.
type Event struct {
	Kind    EventKind
	Channel []byte // of a message
	Pattern []byte // EventPatternMessage: the pattern that the channel matched
	Payload []byte // of a message
	Key     []byte // EventChanged: the key; nil: any key may have changed
}

// EventKind says what an Event tells of.
type EventKind uint8

const (
	// EventMessage: a message was published on the masters in a channel that is
	// subscribed to. It is told once, when a quorum has published it; if that
	// takes longer than MasterTimeout, it is told before and once more.
	EventMessage EventKind = iota
	// EventPatternMessage: the same, for a pattern that is subscribed to.
	EventPatternMessage
	// EventChanged: a key that is tracked was written, deleted or has expired,
	// in some database. It may be told more often than that.
	EventChanged
	// EventGap: for a while too few masters were listened to, and messages may
	// have been missed. From now on they are heard again. It comes for channels
	// and patterns only; for keys there is an EventChanged without key.
	EventGap
)

// Subscriber is a party that is told what happens on the masters. Its methods
// may be called from several goroutines.
type Subscriber struct {
	listening *Hub
	hear      func(Event)
	closed    atomic.Bool

	// guarded by listening.mu
	topics    map[topic]*subscription
	keys      map[string]struct{}
	prefixes  map[string]struct{}
	informed  bool // a call of Track has returned
	uncovered int  // channels and patterns that fewer than a quorum have confirmed
	exposed   bool // messages may have been missed, and it has not been told
	pending   []Event
	bytes     int           // of pending
	drained   chan struct{} // closed when the goroutine that calls hear has ended; nil: there is none
}

// Subscriber makes a party that hears of nothing yet. hear is called with one event at a
// time and must not block; nor may Close be called in it.
func (l *Hub) Subscriber(hear func(Event)) *Subscriber {
	return &Subscriber{
		listening: l,
		hear:      hear,
		topics:    map[topic]*subscription{},
		keys:      map[string]struct{}{},
		prefixes:  map[string]struct{}{},
	}
}

// Subscribe begins to hear of messages in channels. It returns once every
// master that is connected has confirmed that, at the latest after
// MasterTimeout or with ctx; only where listening to the masters has just begun
// it waits longer, for a quorum of them. Without a quorum an EventGap follows
// once there is one.
func (s *Subscriber) Subscribe(ctx context.Context, channels ...string) {
	s.want(ctx, ofChannel, channels)
}

// Unsubscribe ends Subscribe for these channels. Messages that came before may
// still be heard.
func (s *Subscriber) Unsubscribe(channels ...string) { s.leave(ofChannel, channels) }

// PSubscribe is Subscribe for channels that match Redis's glob patterns.
func (s *Subscriber) PSubscribe(ctx context.Context, patterns ...string) {
	s.want(ctx, ofPattern, patterns)
}

// PUnsubscribe ends PSubscribe for these patterns.
func (s *Subscriber) PUnsubscribe(patterns ...string) { s.leave(ofPattern, patterns) }

// Track begins to hear of changes of keys, in whatever database, until
// Untrack. It returns as Subscribe does. Masters that were away or come later
// make an EventChanged without key.
func (s *Subscriber) Track(ctx context.Context, keys ...string) {
	s.track(ctx, s.keys, s.listening.keys, keys)
}

// Untrack ends Track for these keys.
func (s *Subscriber) Untrack(keys ...string) { s.untrack(s.keys, s.listening.keys, keys) }

// TrackPrefix is Track for all keys that begin with prefix, all there are if
// it is empty.
func (s *Subscriber) TrackPrefix(ctx context.Context, prefix string) {
	s.track(ctx, s.prefixes, s.listening.prefixes, []string{prefix})
}

// UntrackPrefix ends TrackPrefix for this prefix.
func (s *Subscriber) UntrackPrefix(prefix string) {
	s.untrack(s.prefixes, s.listening.prefixes, []string{prefix})
}

// Close ends it; after it has returned hear is not called any more.
func (s *Subscriber) Close() {
	l := s.listening
	s.closed.Store(true)
	l.mu.Lock()
	for t := range s.topics {
		l.leave(s, t)
	}
	l.keys.leaveAll(s, s.keys)
	l.prefixes.leaveAll(s, s.prefixes)
	s.pending, s.bytes = nil, 0
	drained := s.drained
	l.mu.Unlock()
	if drained != nil {
		<-drained
	}
}

func (s *Subscriber) want(ctx context.Context, kind topicKind, names []string) {
	l := s.listening
	l.mu.Lock()
	if s.closed.Load() {
		l.mu.Unlock()
		return
	}
	subs := make([]*subscription, 0, len(names))
	for _, name := range names {
		subs = append(subs, l.want(s, topic{kind, strings.Clone(name)}))
	}
	l.mu.Unlock()
	l.await(ctx, subs)
	l.mu.Lock()
	defer l.mu.Unlock()
	// What was published before this moment was not promised.
	s.exposed = s.exposed || s.uncovered > 0
}

func (s *Subscriber) leave(kind topicKind, names []string) {
	s.listening.mu.Lock()
	defer s.listening.mu.Unlock()
	for _, name := range names {
		s.listening.leave(s, topic{kind, name})
	}
}

// track adds names to mine and all, which are both keys or both prefixes.
func (s *Subscriber) track(ctx context.Context, mine map[string]struct{}, all trackers, names []string) {
	l := s.listening
	l.mu.Lock()
	if s.closed.Load() || len(names) == 0 {
		l.mu.Unlock()
		return
	}
	for _, name := range names {
		name = strings.Clone(name)
		mine[name] = struct{}{}
		all.join(s, name)
	}
	sub := l.want(s, topic{kind: ofChanges})
	l.mu.Unlock()
	l.await(ctx, []*subscription{sub})
	l.mu.Lock()
	defer l.mu.Unlock()
	s.informed = true
}

func (s *Subscriber) untrack(mine map[string]struct{}, all trackers, names []string) {
	s.listening.mu.Lock()
	defer s.listening.mu.Unlock()
	for _, name := range names {
		if _, tracked := mine[name]; tracked {
			delete(mine, name)
			all.leave(s, name)
		}
	}
	if len(s.keys)+len(s.prefixes) == 0 {
		s.listening.leave(s, topic{kind: ofChanges})
		s.informed = false
	}
}

// What may wait for a subscriber whose hear is slow. Beyond that it is told
// that it has missed something.
const (
	maxPending      = 1 << 14
	maxPendingBytes = 16 << 20
)

// tell queues an event, with listening.mu held.
func (s *Subscriber) tell(e Event) {
	if s.closed.Load() || s.listening.closed {
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
		s.listening.running.Go(func() {
			defer close(drained)
			stream.Contained(s.listening.log, s.drain)
		})
	}
}

// overflow puts what tells of a loss in the place of what waits.
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

// drain calls hear until nothing waits, apart from everybody else.
func (s *Subscriber) drain() {
	for {
		s.listening.mu.Lock()
		events := s.pending
		s.pending, s.bytes = nil, 0
		if len(events) == 0 {
			s.drained = nil
			s.listening.mu.Unlock()
			return
		}
		s.listening.mu.Unlock()
		for _, e := range events {
			if !s.closed.Load() {
				s.hear(e)
			}
		}
	}
}
