package pubsub

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// NameOverhead is an estimate of the memory of one name or tracked key, besides its bytes.
const NameOverhead = 300

// A Listener has the channels, patterns and keys that one session's client wants from the masters, and
// writes what they report to the client. A session without subscriptions and without tracking has none.
//
// The names, the version of the protocol and the tracked keys change only under the client's write lock,
// together with the bytes that say so to the client. So the client gets no message before the confirmation of a
// SUBSCRIBE, and none after that of an UNSUBSCRIBE.
type Listener struct {
	*session.Names
	session *session.Session
	masters Source
	peek    Peek
	out     *upstream.Writer // the client's
	memory  *session.Budget

	// The session's goroutine uses these.
	names int         // memory for the names
	busy  []string    // keys of the lock command under way
	own   *ownCommand // that command, if it may change them

	// The client's write lock guards these.
	version wire.Version
	tracked *trackedKeys // nil if the client tracks nothing
	keys    int          // memory for these
	waiting int          // memory for messages that the client has not taken, or more
	closed  bool
	ends    func() // ends the session when the lock is free again; nil: nothing does

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	checks sync.WaitGroup // self-change checks
}

// Listen starts a Listener for a session's client, to what subscribe opens. version is what the client reads
// now. The caller must call Close.
func Listen(s *session.Session, subscribe Subscribe, peek Peek, version wire.Version) *Listener {
	l := &Listener{Names: session.NewNames(), session: s, peek: peek, out: s.Writer(), memory: s.Env.Budget, version: version}
	l.ctx, l.cancel = context.WithCancel(s.Context())
	l.masters = subscribe(l.onEvent)
	s.SetNames(l.Names)
	s.Env.Metrics.ClientListens(1)
	return l
}

// Close stops the Listener. It returns when no more events arrive and nothing more is written to the
// client. The caller must have left the loop.
func (l *Listener) Close() {
	l.session.SetNames(nil)
	l.masters.Close()
	l.cancel()
	l.checks.Wait()
	l.out.Lock()
	l.memory.Release(l.names + l.keys + l.waiting)
	l.names, l.keys, l.waiting = 0, 0, 0 // GiveBack may still come
	l.closed = true
	l.out.Unlock()
	l.session.Env.Metrics.ClientListens(-1)
}

// onEvent handles an event of the masters. The Source calls it from its own goroutines, so it does not
// block.
func (l *Listener) onEvent(e redlock.Event) {
	l.out.Lock()
	defer l.unlock()
	switch e.Kind {
	case redlock.EventMessage:
		if l.IsConfirmed(wire.FamilyChannel, e.Channel) {
			l.push(1, 0, "message", e.Channel, e.Payload)
		}
	case redlock.EventPatternMessage:
		if l.IsConfirmed(wire.FamilyPattern, e.Pattern) && !IsNotification(e.Channel) {
			l.push(1, 0, "pmessage", e.Pattern, e.Channel, e.Payload)
		}
	case redlock.EventChanged:
		l.onChange(e.Key)
	case redlock.EventGap:
		l.onChange(nil)
		if l.Any() && l.ends == nil {
			l.ends = func() { l.Missed("too few masters were listened to") }
		}
	}
}

// unlock gives the client's write lock back. Only then the session ends, if it has to, because its log line may take
// time.
func (l *Listener) unlock() {
	ends := l.ends
	l.ends = nil
	l.out.Unlock()
	if ends != nil {
		ends()
	}
}

// push writes a push of bulk strings to the client, between two values of other writers. It counts as so
// many messages and invalidations. The caller holds the client's write lock.
func (l *Listener) push(messages, invalidations int, kind string, parts ...[]byte) {
	text := wire.AppendPushHeader(nil, 1+len(parts), l.version)
	text = redcon.AppendBulkString(text, kind)
	for _, part := range parts {
		text = redcon.AppendBulk(text, part)
	}
	l.write(text, messages, invalidations)
}

// write appends a push to what waits for the client. If that is too much, it ends the session (unlock), so
// that the client knows that it may miss messages. The caller holds the client's write lock.
func (l *Listener) write(text []byte, messages, invalidations int) {
	l.giveBack()
	waiting := l.waiting + len(text)
	switch {
	case l.closed || l.session.InPipe(): // in a pipe the ends of values are not known
	case int64(waiting) > l.session.Env.Active.Load().Limits.Output:
		l.overflow(session.Overflow)
	case !l.memory.Reserve(len(text)):
		l.overflow(session.OverflowMemory)
	default:
		l.waiting = waiting
		if l.out.Append(text) == nil { // otherwise the session learns of it, too
			l.session.Env.Metrics.WokenUp(messages, invalidations)
		}
	}
}

func (l *Listener) overflow(why session.Reason) {
	l.closed = true
	l.ends = func() { l.session.End(why) }
}

// GiveBack gives back the memory for what the client has taken. Any goroutine may call it.
func (l *Listener) GiveBack() {
	l.out.Lock()
	defer l.out.Unlock()
	l.giveBack()
}

// giveBack is GiveBack with the client's write lock held. Replies wait between the messages, so some that were
// taken may count until less waits in all.
func (l *Listener) giveBack() {
	if less := l.waiting - l.out.Backlog(); less > 0 {
		l.waiting -= less
		l.memory.Release(less)
	}
}

// Missed ends the session after the commands that it has received, because its client may have missed
// messages. Any goroutine may call it.
func (l *Listener) Missed(reason string) {
	l.session.End(session.MissedMessages, slog.String("reason", reason))
}

// Subscribe asks the masters for names, unless they are asked already. It returns when they have confirmed
// the subscriptions, or when ctx ends. The client gets messages once each name is confirmed to it.
func (l *Listener) Subscribe(ctx context.Context, of wire.Family, names []string) {
	var missing []string
	for _, name := range names {
		if l.Add(of, name) {
			missing = append(missing, name)
			l.names += len(name) + NameOverhead
			l.memory.Use(len(name) + NameOverhead)
		}
	}
	switch {
	case len(missing) == 0:
	case of == wire.FamilyPattern:
		l.masters.PSubscribe(ctx, missing...)
	default:
		l.masters.Subscribe(ctx, missing...)
	}
}

// Unsubscribe ends the subscriptions at the masters that the client has ended. It returns true if the
// client needs nothing more from the masters. The caller must have passed every confirmation to Confirm
// before.
func (l *Listener) Unsubscribe() (idle bool) {
	l.leave(wire.FamilyChannel, l.masters.Unsubscribe)
	l.leave(wire.FamilyPattern, l.masters.PUnsubscribe)
	l.out.Lock()
	defer l.out.Unlock()
	return !l.Any() && l.tracked == nil
}

func (l *Listener) leave(of wire.Family, leave func(...string)) {
	gone := l.Drop(of)
	for _, name := range gone {
		l.names -= len(name) + NameOverhead
		l.memory.Release(len(name) + NameOverhead)
	}
	if len(gone) > 0 {
		leave(gone...)
	}
}

// Speak sets the version of the protocol that the client reads from now on. The caller
// holds the client's write lock.
func (l *Listener) Speak(version wire.Version) { l.version = version }

// Subscribe opens a Source that calls onEvent with each event on the masters.
type Subscribe func(onEvent func(redlock.Event)) Source

// Peek reads a key on the masters, for a Listener's own use.
type Peek func(ctx context.Context, db int, key string) (reply []byte)

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
