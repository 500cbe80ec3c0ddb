package pubsub

import (
	"context"
	"maps"
	"slices"
	"strings"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// MaxTrackedKeys bounds the number of keys that are remembered for one client. Beyond
// it the listener invalidates some key and forgets it, as Redis does beyond
// tracking-table-max-keys.
const MaxTrackedKeys = 10_000

// trackedKeys holds the lock keys that one client has read or just used. The Listener's
// mu guards all of it.
type trackedKeys struct {
	mode Mode
	keys map[string]*trackedKey
}

// trackedKey is one of these keys. While a command of the client runs on the key, and
// until its reply is written, the client gets no invalidation for the key. Otherwise
// the client would take the invalidation for older than the reply.
type trackedKey struct {
	remembered  bool        // the client has read the key and gets one invalidation
	running     int         // the number of the client's commands that run on the key
	changed     bool        // the key changed while they ran
	own         *ownCommand // nil if the client's last command cannot have changed the key
	checkQueued bool        // an itemSelfCheck is in the outbox
}

// Track starts tracking, or changes its mode. A nil mode ends tracking.
func (l *Listener) Track(mode *Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case mode == nil && l.tracked == nil:
	case mode == nil:
		for key := range l.tracked.keys {
			l.forget(key)
		}
		l.tracked = nil
	case l.tracked == nil:
		l.tracked = &trackedKeys{mode: *mode, keys: make(map[string]*trackedKey)}
	default:
		l.tracked.mode = *mode
	}
}

// Begin must be called before a command of the client is sent to the masters. remember
// tells whether the client reads the keys and wants to know when they change.
func (l *Listener) Begin(keys []string, remember bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tracked == nil {
		return
	}
	for _, key := range keys {
		entry := l.tracked.keys[key]
		if entry == nil {
			l.evict()
			if !l.reserve(len(key) + NameOverhead) {
				return
			}
			entry = &trackedKey{}
			l.tracked.keys[key] = entry
		}
		entry.running++
		entry.remembered = entry.remembered || remember
	}
}

// Answered must be called when the masters have answered the command and the reply is
// not written yet. own is nil if the command changed nothing, or if the mode does not
// need it.
func (l *Listener) Answered(keys []string, own *ownCommand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tracked == nil {
		return
	}
	for _, key := range keys {
		if entry := l.tracked.keys[key]; entry != nil {
			entry.own = own
		}
	}
}

// Replied must be called when the command's reply is written.
func (l *Listener) Replied(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tracked == nil {
		return
	}
	for _, key := range keys {
		entry := l.tracked.keys[key]
		if entry == nil || entry.running == 0 { // tracking ended after Begin
			continue
		}
		if entry.running--; entry.running > 0 {
			continue
		}
		if entry.changed {
			entry.changed = false
			l.change(key, entry)
		}
		l.forgetUnused(key, entry)
	}
}

// onChange handles the change of a key. A nil key means that any key may have
// changed. The caller holds mu.
func (l *Listener) onChange(key []byte) {
	t := l.tracked
	switch {
	case t == nil || string(key) == redlock.MarkerKey:
	case key == nil:
		l.changeAll()
	default:
		if entry := t.keys[string(key)]; entry != nil {
			l.change(string(key), entry)
		} else if t.mode.Broadcast && l.broadcasts(key) {
			l.enqueue(newItem(itemInvalidation, key))
		}
	}
}

// change invalidates a key that the client read or, with BCAST, may have read. It may
// postpone this until a reply is written, or until a check shows that the change is not
// the client's own. The caller holds mu.
func (l *Listener) change(key string, entry *trackedKey) {
	bcast := l.tracked.mode.Broadcast
	switch {
	case !entry.remembered && !(bcast && l.broadcasts([]byte(key))):
		return
	case entry.running > 0:
		entry.changed = true
		return
	case l.tracked.mode.NoLoop && entry.own != nil:
		if !entry.checkQueued {
			entry.checkQueued = true
			l.enqueue(newItem(itemSelfCheck, []byte(key)))
		}
		return
	}
	l.invalidate(key, entry)
}

// invalidate queues an invalidation and, except with BCAST, forgets the key. The client
// gets no other invalidation until it reads the key again. The caller holds mu.
func (l *Listener) invalidate(key string, entry *trackedKey) {
	entry.remembered, entry.own = false, nil
	l.enqueue(newItem(itemInvalidation, []byte(key)))
	l.forgetUnused(key, entry)
}

// changeAll handles a change of unknown keys: any key may have changed. The caller holds
// mu.
func (l *Listener) changeAll() {
	if l.tracked.mode.Broadcast {
		for _, entry := range l.tracked.keys {
			entry.own = nil
		}
		l.enqueue(item{kind: itemInvalidateAll})
		return
	}
	var keys [][]byte
	for key, entry := range l.tracked.keys {
		switch {
		case !entry.remembered:
		case entry.running > 0:
			entry.changed, entry.own = true, nil
		default:
			entry.remembered = false
			keys = append(keys, []byte(key))
			l.forgetUnused(key, entry)
		}
	}
	if len(keys) > 0 {
		l.enqueue(item{kind: itemInvalidation, parts: keys})
	}
}

// broadcasts tells whether a client with BCAST gets invalidations for a key. It returns
// false for a key that is no lock key, because the masters may hold other data, too.
func (l *Listener) broadcasts(key []byte) bool {
	if !l.session.Env.Active.Load().Router.Rules.Covers(route.AnyDB, key) {
		return false
	}
	prefixes := l.tracked.mode.Prefixes
	for _, prefix := range prefixes {
		if strings.HasPrefix(string(key), prefix) {
			return true
		}
	}
	return len(prefixes) == 0
}

// forgetUnused forgets an entry that is no longer needed. The caller holds mu.
func (l *Listener) forgetUnused(key string, entry *trackedKey) {
	kept := entry.remembered || l.tracked.mode.Broadcast && entry.own != nil
	if entry.running == 0 && !kept {
		l.forget(key)
	}
}

// forget deletes an entry and gives its memory back. The caller holds mu.
func (l *Listener) forget(key string) {
	if _, known := l.tracked.keys[key]; known {
		delete(l.tracked.keys, key)
		l.reserve(-len(key) - NameOverhead)
	}
}

// reserve takes memory for tracked keys. A negative size gives memory back. If there is
// no memory, it ends the session, so that the client knows that it may miss changes, and
// returns false. The caller holds mu.
func (l *Listener) reserve(size int) bool {
	switch {
	case l.closed:
		return false
	case !l.memory.Reserve(size):
		l.overflow(true)
		return false
	}
	l.trackedBytes += size
	return true
}

// evict makes room for one key if MaxTrackedKeys is reached. It invalidates and forgets
// some key on which no command runs. The caller holds mu.
func (l *Listener) evict() {
	if len(l.tracked.keys) < MaxTrackedKeys {
		return
	}
	for key, entry := range l.tracked.keys {
		if entry.running > 0 {
			continue
		}
		if entry.remembered {
			l.invalidate(key, entry)
		}
		l.forget(key)
		return
	}
}

// TrackKeys asks the masters to report changes of keys, unless they were asked before.
// It returns when the masters do so, or when ctx ends.
func (l *Listener) TrackKeys(ctx context.Context, keys []string) {
	var missing []string
	for _, key := range keys {
		if l.askFor(l.askedKeys, key) {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		l.masters.Track(ctx, missing...)
		l.pruneKeys()
	}
}

// TrackPrefixes does the same for all keys that begin with one of the prefixes.
func (l *Listener) TrackPrefixes(ctx context.Context, prefixes []string) {
	for _, prefix := range prefixes {
		if l.askFor(l.askedPrefix, prefix) {
			l.masters.TrackPrefix(ctx, prefix)
		}
	}
}

// pruneKeys stops the reports of keys that are no longer remembered. It does so only
// when there are many such keys: the client reads most keys again soon, and then the
// masters need not be asked again.
func (l *Listener) pruneKeys() {
	const slack = 64
	var gone []string
	l.mu.Lock()
	if l.tracked != nil && len(l.askedKeys) > slack+2*len(l.tracked.keys) {
		for key := range l.askedKeys {
			if l.tracked.keys[key] == nil {
				gone = append(gone, key)
			}
		}
	}
	l.mu.Unlock()
	for _, key := range gone {
		l.askNoMore(l.askedKeys, key)
	}
	if len(gone) > 0 {
		l.masters.Untrack(gone...)
	}
}

// ForgetKeys stops the masters' reports of all keys and prefixes.
func (l *Listener) ForgetKeys() {
	if keys := slices.Collect(maps.Keys(l.askedKeys)); len(keys) > 0 {
		l.masters.Untrack(keys...)
		for _, key := range keys {
			l.askNoMore(l.askedKeys, key)
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(l.askedPrefix)) {
		l.masters.UntrackPrefix(prefix)
		l.askNoMore(l.askedPrefix, prefix)
	}
}

// askFor notes that the masters are asked for a key or a prefix. It returns false if
// they were asked before, or if there is no memory.
func (l *Listener) askFor(asked map[string]struct{}, name string) (isNew bool) {
	if _, known := asked[name]; known {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.reserve(len(name) + NameOverhead) {
		return false
	}
	asked[name] = struct{}{}
	return true
}

// askNoMore undoes askFor.
func (l *Listener) askNoMore(asked map[string]struct{}, name string) {
	delete(asked, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserve(-len(name) - NameOverhead)
}
