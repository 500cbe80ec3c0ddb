package pubsub

import (
	"bytes"
	"context"

	"redlock-proxy/redlock"
)

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
