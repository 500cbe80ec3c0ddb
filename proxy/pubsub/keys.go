package pubsub

import (
	"context"
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// MaxTrackedKeys bounds the number of keys that are remembered for one client. Beyond
// it the listener invalidates some key and forgets it, as Redis does beyond
// tracking-table-max-keys.
const MaxTrackedKeys = 10_000

// trackedKeys holds the lock keys that one client has read or just used.
type trackedKeys struct {
	Mode
	keys      map[string]*trackedKey
	unchecked []string // keys for self-change checks
	checking  bool     // a goroutine makes them
}

// trackedKey is one of these keys. While a command of the client runs on the key, and
// until its reply is written, the client gets no invalidation for the key. Otherwise
// the client would take the invalidation for older than the reply.
type trackedKey struct {
	remembered bool        // the client has read the key and gets one invalidation; the masters are asked for the key
	busy       bool        // the client's command runs on the key
	changed    bool        // the key changed while it ran
	own        *ownCommand // nil if the client's last command cannot have changed the key
	unchecked  bool        // the key is in trackedKeys.unchecked
}

// Track starts tracking, or changes its mode. A nil mode ends tracking. It returns when the masters report the
// changes that the mode needs, or when ctx ends.
func (l *Listener) Track(ctx context.Context, mode *Mode) {
	l.out.Lock()
	if l.tracked == nil {
		l.tracked = &trackedKeys{keys: make(map[string]*trackedKey)}
	}
	t, wanted := l.tracked, mode.prefixes()
	l.reserve(memoryOf(wanted) - memoryOf(t.prefixes()))
	if mode == nil {
		for _, prefix := range t.prefixes() {
			l.masters.UntrackPrefix(prefix)
		}
		for key, entry := range t.keys {
			l.forgetRead(key, entry)
			l.forget(key)
		}
		l.tracked = nil
	} else {
		t.Mode = *mode
	}
	l.unlock()
	for _, prefix := range wanted {
		l.masters.TrackPrefix(ctx, prefix)
	}
}

func memoryOf(names []string) (bytes int) {
	for _, name := range names {
		bytes += len(name) + NameOverhead
	}
	return bytes
}

// Begin is called before lock commands are sent to the masters, so that no change from then on is missed.
// remember tells whether the client wants to know when keys that it reads change. It returns when the
// masters report changes of these, or when ctx ends.
func (l *Listener) Begin(ctx context.Context, commands []lock.Command, remember bool) {
	reads := false
	for _, call := range commands {
		for _, key := range call.Keys() {
			if text := string(key); !slices.Contains(l.busy, text) {
				l.busy = append(l.busy, text)
			}
		}
		reads = reads || !call.Route.Spec.Write()
	}
	if missing := l.begin(commands, remember && reads); len(missing) > 0 {
		l.masters.Track(ctx, missing...)
	}
}

// begin is Begin under the client's write lock. It returns the keys for which the masters are not asked yet.
func (l *Listener) begin(commands []lock.Command, remember bool) (missing []string) {
	l.out.Lock()
	defer l.unlock()
	t := l.tracked
	if t == nil {
		return nil
	}
	if t.NoLoop {
		l.own = newOwnCommand(commands)
	}
	for _, key := range l.busy {
		entry := t.keys[key]
		if entry == nil {
			l.evict()
			if !l.reserve(len(key) + NameOverhead) {
				return nil
			}
			entry = &trackedKey{}
			t.keys[key] = entry
		}
		entry.busy = true
		if remember && !entry.remembered {
			entry.remembered = true
			missing = append(missing, key)
		}
	}
	return missing
}

// IsBusy tells whether Begin was called, so that Replied must be.
func (l *Listener) IsBusy() bool { return len(l.busy) > 0 }

// Replied is called once the client has the masters' reply to the commands. The invalidations of their keys
// follow.
func (l *Listener) Replied(reply []byte) {
	l.out.Lock()
	defer l.unlock()
	if didNothing(reply) {
		l.own = nil
	}
	for _, key := range l.busy {
		if l.tracked == nil || l.tracked.keys[key] == nil { // tracking has ended, or memory
			continue
		}
		entry := l.tracked.keys[key]
		changed := entry.changed
		entry.busy, entry.changed, entry.own = false, false, l.own
		if changed {
			l.change(key, entry)
		}
		l.forgetUnused(key, entry)
	}
	l.busy, l.own = nil, nil
}

// onChange handles the change of a key. A nil key means that any key may have
// changed.
func (l *Listener) onChange(key []byte) {
	t := l.tracked
	switch {
	case t == nil || string(key) == redlock.MarkerKey:
	case key == nil:
		l.changeAll()
	default:
		if entry := t.keys[string(key)]; entry != nil {
			l.change(string(key), entry)
		} else if l.broadcasts(string(key)) {
			l.invalidate(string(key))
		}
	}
}

// change invalidates a key that the client read or, with BCAST, may have read. It may
// postpone this until a reply is written, or until a check shows that the change is not
// the client's own.
func (l *Listener) change(key string, entry *trackedKey) {
	switch {
	case !entry.remembered && !l.broadcasts(key):
	case entry.busy:
		entry.changed = true
	case l.tracked.NoLoop && entry.own != nil:
		l.check(key, entry)
	default:
		entry.own = nil
		l.forgetRead(key, entry)
		l.forgetUnused(key, entry)
		l.invalidate(key)
	}
}

// changeAll handles a change of unknown keys: any key may have changed.
func (l *Listener) changeAll() {
	if l.tracked.Broadcast {
		for _, entry := range l.tracked.keys {
			entry.own = nil
		}
		l.invalidate()
		return
	}
	var keys []string
	for key, entry := range l.tracked.keys {
		switch {
		case !entry.remembered:
		case entry.busy:
			entry.changed = true
		default:
			keys = append(keys, key)
			l.forgetRead(key, entry)
			l.forgetUnused(key, entry)
		}
	}
	if len(keys) > 0 {
		l.invalidate(keys...)
	}
}

// invalidate tells the client that these keys have changed; without keys, that any may have. RESP2 has no form
// for it.
func (l *Listener) invalidate(keys ...string) {
	if l.version != wire.RESP3 {
		return
	}
	text := redcon.AppendBulkString(wire.AppendPushHeader(nil, 2, l.version), "invalidate")
	if len(keys) == 0 {
		text = wire.AppendNull(text, l.version)
	} else {
		text = redcon.AppendArray(text, len(keys))
	}
	for _, key := range keys {
		text = redcon.AppendBulkString(text, key)
	}
	l.write(text, 0, 1)
}

// broadcasts tells whether the client gets invalidations for a key that it need not have read, by BCAST. It
// returns false for a key that is no lock key, because the masters may hold other data, too.
func (l *Listener) broadcasts(key string) bool {
	return slices.ContainsFunc(l.tracked.prefixes(), func(prefix string) bool { return strings.HasPrefix(key, prefix) }) &&
		l.session.Env.Active.Load().Router.Rules.Covers(route.AnyDB, []byte(key))
}

// forgetRead ends the masters' reports of a key that the client has read, until it reads it again.
func (l *Listener) forgetRead(key string, entry *trackedKey) {
	if entry.remembered {
		entry.remembered = false
		l.masters.Untrack(key)
	}
}

// forgetUnused forgets an entry that is no longer needed.
func (l *Listener) forgetUnused(key string, entry *trackedKey) {
	kept := entry.remembered || l.tracked.Broadcast && entry.own != nil
	if !entry.busy && !kept {
		l.forget(key)
	}
}

// forget deletes an entry and gives its memory back.
func (l *Listener) forget(key string) {
	if _, known := l.tracked.keys[key]; known {
		delete(l.tracked.keys, key)
		l.reserve(-len(key) - NameOverhead)
	}
}

// reserve takes memory for tracked keys. A negative size gives memory back. If there is
// no memory, it ends the session, so that the client knows that it may miss changes, and
// returns false.
func (l *Listener) reserve(size int) bool {
	if !l.memory.Reserve(size) {
		l.overflow(session.OverflowMemory)
		return false
	}
	l.keys += size
	return true
}

// evict makes room for one key if MaxTrackedKeys is reached. It invalidates and forgets
// some key on which no command runs.
func (l *Listener) evict() {
	if len(l.tracked.keys) < MaxTrackedKeys {
		return
	}
	for key, entry := range l.tracked.keys {
		if entry.busy {
			continue
		}
		if entry.remembered {
			l.forgetRead(key, entry)
			l.invalidate(key)
		}
		l.forget(key)
		return
	}
}
