package notify

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

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
	topics    map[topic]*subscription
	patterns  map[string]struct{} // that want everyChannel
	keys      map[string]struct{}
	prefixes  map[string]struct{}
	informed  bool // a call of Track has returned
	uncovered int  // channels and patterns that fewer than a quorum have confirmed
	exposed   bool // messages may have been missed, and no EventGap was sent
	pending   []Event
	bytes     int           // of pending
	drained   chan struct{} // closed when the goroutine that calls hear has ended; nil if there is none
}

// Subscriber makes a Subscriber that hears nothing yet. hear is called with one event at
// a time. It must neither block nor call Close.
func (l *Hub) Subscriber(hear func(Event)) *Subscriber {
	return &Subscriber{
		hub:      l,
		hear:     hear,
		topics:   map[topic]*subscription{},
		patterns: map[string]struct{}{},
		keys:     map[string]struct{}{},
		prefixes: map[string]struct{}{},
	}
}

// Subscribe begins to hear messages in channels. It returns once every connected master
// has confirmed that, but at the latest after MasterTimeout or when ctx ends. Only if
// listening to the masters has just begun, it waits longer, for a quorum of them. If
// there is no quorum, an EventGap follows once there is one.
func (s *Subscriber) Subscribe(ctx context.Context, channels ...string) {
	s.want(ctx, ofChannel, channels)
}

// Unsubscribe ends Subscribe for these channels. Messages that arrived before may still
// be heard.
func (s *Subscriber) Unsubscribe(channels ...string) { s.leave(ofChannel, channels) }

// everyChannel is the one pattern that the masters are asked for. Each master would compare each
// message with all patterns of all subscribers, and send it once for each that matches, while
// locks wait for it.
var everyChannel = topic{ofPattern, "*"}

// PSubscribe is Subscribe for channels that match Redis's glob patterns.
func (s *Subscriber) PSubscribe(ctx context.Context, patterns ...string) {
	s.want(ctx, ofPattern, patterns)
}

// PUnsubscribe ends PSubscribe for these patterns.
func (s *Subscriber) PUnsubscribe(patterns ...string) { s.leave(ofPattern, patterns) }

// Track begins to hear changes of keys, in any database, until Untrack. It returns as
// Subscribe does. If a master was unreachable or connects later, an EventChanged without
// key comes.
func (s *Subscriber) Track(ctx context.Context, keys ...string) {
	s.track(ctx, s.keys, s.hub.keys, keys)
}

// Untrack ends Track for these keys.
func (s *Subscriber) Untrack(keys ...string) { s.untrack(s.keys, s.hub.keys, keys) }

// TrackPrefix is Track for all keys that begin with prefix. The empty prefix means all
// keys.
func (s *Subscriber) TrackPrefix(ctx context.Context, prefix string) {
	s.track(ctx, s.prefixes, s.hub.prefixes, []string{prefix})
}

// UntrackPrefix ends TrackPrefix for this prefix.
func (s *Subscriber) UntrackPrefix(prefix string) {
	s.untrack(s.prefixes, s.hub.prefixes, []string{prefix})
}

// Close ends the Subscriber. After Close has returned, hear is not called any more.
func (s *Subscriber) Close() {
	l := s.hub
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
	l := s.hub
	l.mu.Lock()
	if s.closed.Load() {
		l.mu.Unlock()
		return
	}
	subs := make([]*subscription, 0, len(names))
	for _, name := range names {
		t := topic{kind, strings.Clone(name)}
		if kind == ofPattern {
			s.patterns[t.name] = struct{}{}
			t = everyChannel
		}
		subs = append(subs, l.want(s, t))
	}
	l.mu.Unlock()
	l.await(ctx, subs)
	l.mu.Lock()
	defer l.mu.Unlock()
	// Messages published before this moment were not promised.
	s.exposed = s.exposed || s.uncovered > 0
}

func (s *Subscriber) leave(kind topicKind, names []string) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, name := range names {
		if kind != ofPattern {
			s.hub.leave(s, topic{kind, name})
		} else if delete(s.patterns, name); len(s.patterns) == 0 {
			s.hub.leave(s, everyChannel)
		}
	}
}

// track adds names to mine and all. Both are keys, or both are prefixes.
func (s *Subscriber) track(ctx context.Context, mine map[string]struct{}, all trackers, names []string) {
	l := s.hub
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
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, name := range names {
		if _, tracked := mine[name]; tracked {
			delete(mine, name)
			all.leave(s, name)
		}
	}
	if len(s.keys)+len(s.prefixes) == 0 {
		s.hub.leave(s, topic{kind: ofChanges})
		s.informed = false
	}
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
		s.hub.running.Go(func() {
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
