package pubsub

import (
	"bytes"
	"context"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

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

// Subscribe opens a Source that calls onEvent with each event on the masters. If it is
// nil, sessions do not listen to the masters.
type Subscribe func(onEvent func(redlock.Event)) Source

// isNotification tells whether a channel is one of keyspace notifications. Clients get
// those of the upstream only.
func isNotification(channel []byte) bool { return bytes.HasPrefix(channel, []byte("__key")) }

// Host is the session whose client a listener serves. Any goroutine may call its
// methods, even one that delivers an event of a master. Overflow does not block. Only
// Peek may use the network.
type Host interface {
	// Covers tells whether the active rules make a key a lock key.
	Covers(key []byte) bool
	// Peek runs a command on one key on the masters, for the listener's own use.
	Peek(ctx context.Context, db int, command, key string) (reply []byte)
	// OutputLimit returns the number of bytes that may wait for the client.
	OutputLimit() int64
	// InPipe tells whether values on the client's connection have no known ends. The
	// caller holds the client's write lock.
	InPipe() bool
	// Delivered reports the number of messages and invalidations that were written.
	Delivered(messages, invalidations int)
	// ClientLeft reports that a write to the client failed.
	ClientLeft()
	// Overflow ends the session at once, as Redis does with a subscriber that does
	// not read. memory tells whether shared memory ran out. Otherwise the client's
	// output limit was exceeded.
	Overflow(memory bool)
	// MissedMessages ends the session after the commands that it has already received.
	MissedMessages(reason string)
	// Panicked ends the session after a panic. reason is the result of recover.
	Panicked(reason any)
}

// A Session is a Host with more methods, for a Client. Package session describes those
// without a comment.
type Session interface {
	Host

	Context() context.Context
	Writer() *conn.Writer
	Upstream() *upstream.Conn
	TryOpen() (refusal wire.Error)
	Settle() bool
	Send()
	Flush()
	Busy(wait func())
	Ask(command []byte) (reply []byte, ok bool)
	Insert(commands []byte, want upstream.Expectation)
	Reply(text string)
	ReplyBytes(value []byte)
	ReplyError(refusal wire.Error)
	FlushWith(first func(replies []byte) []byte)

	// Relay sends the upstream a command as it came, and opens the connection for it.
	Relay(cmd wire.Command, want upstream.Expectation)
	// Version is the protocol that the client reads.
	Version() wire.Version
	// Rules are the active lock rules.
	Rules() route.Rules
	// MayUseLocks tells whether the client's user may hear of locks.
	MayUseLocks() bool
	// MaySubscribe tells whether the client may have this number of subscriptions at the
	// masters, and size more bytes for them. If not, it counts the limit.
	MaySubscribe(names, size int) bool
}
