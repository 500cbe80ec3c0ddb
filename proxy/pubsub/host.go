package pubsub

import (
	"context"

	"redlock-proxy/redlock"
)

// Source is told what happens on the masters. redlock.Subscriber, which
// says what may be relied on, is the one in service.
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

// Subscribe opens a Source that calls hear with what the masters tell. Where it is
// nil they are not listened to.
type Subscribe func(hear func(redlock.Event)) Source

// IsNotification finds what a server tells of its own keyspace.
func IsNotification(channel []byte) bool {
	return len(channel) >= len(notificationPrefix) && string(channel[:len(notificationPrefix)]) == notificationPrefix
}

// notificationPrefix begins the channels of keyspace notifications, which tell
// of the upstream only.
const notificationPrefix = "__key"

// A Host is the session whose client a listener serves. Its methods may be called
// from any goroutine, also while a master tells something: Overflow does not block,
// and none but Peek asks anybody.
type Host interface {
	// Covers tells whether a key is a lock's, by the rules in force.
	Covers(key []byte) bool
	// Peek asks the masters a command about one key, for the listener's own use.
	Peek(ctx context.Context, db int, command, key string) (reply []byte)
	// OutputLimit is how many bytes may wait for the client.
	OutputLimit() int64
	// InPipe tells that nobody knows where values on the client's connection end.
	// The client's writing side is held.
	InPipe() bool
	// Delivered tells how much was written.
	Delivered(messages, invalidations int)
	// ClientLeft tells that the client takes no more.
	ClientLeft()
	// Overflow ends the session at once, as Redis does with a subscriber that does
	// not read. The limit is that of memory, or that of output.
	Overflow(memory bool)
	// MissedMessages ends the session once it has done what it was sent.
	MissedMessages()
	// Panicked ends the session because of what recover returned.
	Panicked(reason any)
}
