package pubsub

import (
	"bytes"
	"context"
	"slices"

	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// CLIENT TRACKING goes to the upstream, which sends the invalidations of its own keys. For
// lock keys the proxy does the same: it remembers which of them a client has read. When
// the masters report a change of one, the client gets one invalidation. With REDIRECT
// clients get none for lock keys, because only the upstream knows the other client.

// Tracking is a client's state of CLIENT TRACKING. The zero value is off.
type Tracking struct {
	Mode     *Mode // nil: off
	Redirect int64 // the client to which invalidations go, by the number of its session; 0: to itself

	// Caching means that CLIENT CACHING was sent for the next command. The upstream gets
	// it only if that command goes there; told means that it has got it.
	Caching, told bool

	present []string // keys of the lock command under way
	own     *ownCommand
}

// Set sets the mode, nil for off.
func (t *Tracking) Set(mode *Mode) { *t = Tracking{Mode: mode} }

// OfMasters tells whether the masters' invalidations are wanted.
func (t *Tracking) OfMasters() bool { return t.Mode != nil && !t.Mode.Redirected }

// Words are the CLIENT TRACKING that sets this mode at an upstream, or nil if tracking is
// off.
func (t *Tracking) Words() []string {
	if t.Mode == nil {
		return nil
	}
	words := []string{"CLIENT", "TRACKING", "ON"}
	for _, option := range []struct {
		set  bool
		word string
	}{{t.Mode.Broadcast, "BCAST"}, {t.Mode.OptIn, "OPTIN"}, {t.Mode.OptOut, "OPTOUT"}, {t.Mode.NoLoop, "NOLOOP"}} {
		if option.set {
			words = append(words, option.word)
		}
	}
	for _, prefix := range t.Mode.Prefixes {
		words = append(words, "PREFIX", prefix)
	}
	return words
}

// Cache performs CLIENT CACHING with this word. It returns the error, or "".
func (t *Tracking) Cache(word []byte) wire.Error {
	yes, no := wire.IsWord(word, "YES"), wire.IsWord(word, "NO")
	switch {
	case t.Mode == nil:
		return wire.ErrCachingOff
	case yes && !t.Mode.OptIn:
		return wire.ErrCachingYes
	case no && !t.Mode.OptOut:
		return wire.ErrCachingNo
	case !yes && !no:
		return wire.ErrSyntax
	}
	t.Caching, t.told = true, false
	return ""
}

// TellCaching returns the client's CLIENT CACHING if the upstream must get it before the next command, or nil.
func (t *Tracking) TellCaching() []byte {
	if !t.Caching || t.told {
		return nil
	}
	t.told = true
	form := "NO" // only one is allowed in each mode
	if t.Mode.OptIn {
		form = "YES"
	}
	return resp.AppendCommand(nil, "CLIENT", "CACHING", form)
}

// remembers tells whether to remember the keys that the next command reads.
func (t *Tracking) remembers() bool {
	switch {
	case !t.OfMasters() || t.Mode.Broadcast:
		return false
	case t.Mode.OptIn:
		return t.Caching
	}
	return !t.Caching
}

// Begin remembers the keys of lock commands that are about to be sent to the masters, so
// that no change from then on is missed. The busy timer may own the client meanwhile.
func (t *Tracking) Begin(ctx context.Context, l *Listener, commands []lock.Command) {
	t.present = nil
	reads := false
	for _, call := range commands {
		for _, key := range call.Keys() {
			if text := string(key); !slices.Contains(t.present, text) {
				t.present = append(t.present, text)
			}
		}
		reads = reads || !call.Route.Spec.Write()
	}
	if t.Mode.NoLoop {
		t.own = newOwnCommand(commands)
	}
	remember := t.remembers() && reads
	l.Begin(t.present, remember)
	if remember {
		l.TrackKeys(ctx, t.present)
	}
}

// Answered is called with the masters' reply to a command that may have begun. It returns false if none has.
// Otherwise the caller calls Replied once the client has the reply.
func (t *Tracking) Answered(l *Listener, reply []byte) bool {
	if len(t.present) == 0 {
		return false
	}
	if t.own != nil && didNothing(reply) {
		t.own = nil
	}
	l.Answered(t.present, t.own)
	return true
}

// Replied lets the invalidations of the command's keys follow its reply.
func (t *Tracking) Replied(l *Listener) {
	l.Replied(t.present)
	t.present, t.own = nil, nil
}

const (
	// ownValueLeast is the least length of a value that identifies a client. Clients may
	// share shorter ones, such as "1".
	ownValueLeast = 16
	// ownValuesMost bounds the bytes of the values that are kept of one command.
	ownValuesMost = 1024
)

// newOwnCommand keeps the values that the commands may store. It returns nil if none of
// them identifies this client.
func newOwnCommand(commands []lock.Command) *ownCommand {
	var values [][]byte
	db, size := 0, 0
	for _, call := range commands {
		db = call.DB
		for i, arg := range call.Args {
			isText := i == 1 && call.Route.Spec.Is(route.Script)
			if i == 0 || isText || len(arg) < ownValueLeast || slices.Contains(call.Route.Keys, i) {
				continue
			}
			if size += len(arg); size > ownValuesMost {
				return nil
			}
			values = append(values, bytes.Clone(arg))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return &ownCommand{db: db, values: values}
}

// didNothing recognises the replies by which most commands say that they changed nothing.
// A few say the opposite by one of them, as Redisson's scripts by nil. Their clients get
// an invalidation too many.
func didNothing(reply []byte) bool {
	switch string(reply) {
	case "$-1\r\n", "*-1\r\n", "_\r\n", ":0\r\n", "#f\r\n":
		return true
	}
	return resp.IsError(reply)
}
