package redlock

import "context"

// Event is one thing that a Subscriber hears. Its slices must not be changed
// and are valid during the call only.
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
	// EventMessage: a message was published on the masters in a channel
	// subscribed to.
	EventMessage EventKind = iota
	// EventPatternMessage: the same, for a pattern subscribed to.
	EventPatternMessage
	// EventChanged: a key that is tracked was written, deleted or has expired,
	// in some database. It can be told once too often.
	EventChanged
	// EventGap: for a while too few masters were listened to, and messages may
	// have been missed. From now on they are heard again.
	EventGap
)

// Subscriber is a party that is told what happens on the masters.
type Subscriber struct {
	hear func(Event)
}

// Subscriber makes a party that is told what happens on the masters. hear is
// called with one event at a time for this subscriber, from goroutines of the
// Locker, and must not block. Close ends it.
func (l *Locker) Subscriber(hear func(Event)) *Subscriber { return &Subscriber{hear: hear} }

// TrackingAvailable tells whether enough masters can tell of changed keys.
// Where they cannot (embedded ones, servers older than Redis 6), Track and
// TrackPrefix hear nothing.
func (l *Locker) TrackingAvailable() bool { return false }

// Subscribe hears of messages in channels from now on.
func (s *Subscriber) Subscribe(ctx context.Context, channels ...string) {}

// Unsubscribe ends Subscribe for these channels.
func (s *Subscriber) Unsubscribe(channels ...string) {}

// PSubscribe hears of messages in channels that match a pattern.
func (s *Subscriber) PSubscribe(ctx context.Context, patterns ...string) {}

// PUnsubscribe ends PSubscribe for these patterns.
func (s *Subscriber) PUnsubscribe(patterns ...string) {}

// Track hears of changes of keys, in whatever database, until Untrack.
func (s *Subscriber) Track(ctx context.Context, keys ...string) {}

// Untrack ends Track for these keys.
func (s *Subscriber) Untrack(keys ...string) {}

// TrackPrefix hears of changes of all keys that begin with prefix.
func (s *Subscriber) TrackPrefix(ctx context.Context, prefix string) {}

// UntrackPrefix ends TrackPrefix for this prefix.
func (s *Subscriber) UntrackPrefix(prefix string) {}

// Close ends it; after it has returned hear is not called any more.
func (s *Subscriber) Close() {}
