package pubsub

import (
	"context"
	"maps"
	"slices"
	"strings"

	"redlock-proxy/redlock"
)

// Mode is what CLIENT TRACKING ON was given.
type Mode struct {
	Broadcast, OptIn, OptOut, NoLoop bool
	Redirected                       bool
	Prefixes                         []string // of BCAST; in all that were given
}

// MaxTrackedKeys bounds what one client has remembered for it. Beyond it some
// key is said to have changed and is forgotten, as Redis does beyond
// tracking-table-max-keys.
const MaxTrackedKeys = 10_000

// trackedKeys are the lock keys that are remembered for one client, or that it
// has just used. All of it is guarded by the listener's mu.
type trackedKeys struct {
	mode Mode
	keys map[string]*trackedKey
}

// trackedKey is one of them. While a command of the client is under way on it,
// and until that command's reply is written, the client is told nothing of it:
// it would take the news for older than the reply.
type trackedKey struct {
	remembered bool // the client has read it and is to be told once
	underWay   int  // commands of the client's own
	changed    bool // and meanwhile it was changed
	own        *OwnCommand
	doubted    bool // a noticeDoubt is in the mail
}

// Track sets what is in force from here on; nil ends it.
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

// Begin is called before a command of the client's own is put to the masters.
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
			if !l.recall(len(key) + NameOverhead) {
				return
			}
			entry = &trackedKey{}
			l.tracked.keys[key] = entry
		}
		entry.underWay++
		entry.remembered = entry.remembered || remember
	}
}

// Answered is called when the command's reply is pending; own is nil where it
// says that nothing was done, or where that does not matter.
func (l *Listener) Answered(keys []string, own *OwnCommand) {
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

// Replied is called when the command's reply is written.
func (l *Listener) Replied(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tracked == nil {
		return
	}
	for _, key := range keys {
		entry := l.tracked.keys[key]
		if entry == nil || entry.underWay == 0 { // tracking was ended between
			continue
		}
		if entry.underWay--; entry.underWay > 0 {
			continue
		}
		if entry.changed {
			entry.changed = false
			l.change(key, entry)
		}
		l.tidy(key, entry)
	}
}

// hearChange takes in that a key was changed, or with nil that any may have
// been. The caller holds mu.
func (l *Listener) hearChange(key []byte) {
	t := l.tracked
	switch {
	case t == nil || string(key) == redlock.MarkerKey:
	case key == nil:
		l.changeAll()
	default:
		if entry := t.keys[string(key)]; entry != nil {
			l.change(string(key), entry)
		} else if t.mode.Broadcast && l.broadcasts(key) {
			l.post(newNotice(noticeInvalid, key))
		}
	}
}

// change has the client told of a key that it read or, with BCAST, may have
// read. The caller holds mu.
func (l *Listener) change(key string, entry *trackedKey) {
	bcast := l.tracked.mode.Broadcast
	switch {
	case !entry.remembered && !(bcast && l.broadcasts([]byte(key))):
		return
	case entry.underWay > 0:
		entry.changed = true
		return
	case l.tracked.mode.NoLoop && entry.own != nil:
		if !entry.doubted {
			entry.doubted = true
			l.post(newNotice(noticeDoubt, []byte(key)))
		}
		return
	}
	l.invalidate(key, entry)
}

// invalidate tells the client and, except with BCAST, forgets the key: it is
// told once, until it reads the key again. The caller holds mu.
func (l *Listener) invalidate(key string, entry *trackedKey) {
	entry.remembered, entry.own = false, nil
	l.post(newNotice(noticeInvalid, []byte(key)))
	l.tidy(key, entry)
}

// changeAll: the masters cannot say which keys were changed. The caller holds mu.
func (l *Listener) changeAll() {
	if l.tracked.mode.Broadcast {
		for _, entry := range l.tracked.keys {
			entry.own = nil
		}
		l.post(notice{kind: noticeAllInvalid})
		return
	}
	var keys [][]byte
	for key, entry := range l.tracked.keys {
		switch {
		case !entry.remembered:
		case entry.underWay > 0:
			entry.changed, entry.own = true, nil
		default:
			entry.remembered = false
			keys = append(keys, []byte(key))
			l.tidy(key, entry)
		}
	}
	if len(keys) > 0 {
		l.post(notice{kind: noticeInvalid, parts: keys})
	}
}

// broadcasts tells whether a client with BCAST is to hear of a key: other
// things than this proxy's locks may be on the masters too.
func (l *Listener) broadcasts(key []byte) bool {
	if !l.host.Covers(key) {
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

// tidy forgets an entry that says nothing. The caller holds mu.
func (l *Listener) tidy(key string, entry *trackedKey) {
	kept := entry.remembered || l.tracked.mode.Broadcast && entry.own != nil
	if entry.underWay == 0 && !kept {
		l.forget(key)
	}
}

// forget is the end of an entry. The caller holds mu.
func (l *Listener) forget(key string) {
	if _, known := l.tracked.keys[key]; known {
		delete(l.tracked.keys, key)
		l.recall(-len(key) - NameOverhead)
	}
}

// recall takes memory for tracked keys, or gives it back. Where there is none the
// session ends: a client that is not told of a change must know. The caller holds mu.
func (l *Listener) recall(size int) bool {
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

// evict keeps the number of keys within its bound. The caller holds mu.
func (l *Listener) evict() {
	if len(l.tracked.keys) < MaxTrackedKeys {
		return
	}
	for key, entry := range l.tracked.keys {
		if entry.underWay > 0 {
			continue
		}
		if entry.remembered {
			l.invalidate(key, entry)
		}
		l.forget(key)
		return
	}
}

// TrackKeys asks the masters for keys that they were not yet asked for, and returns
// when they tell of their changes or ctx has ended.
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

// TrackPrefixes is trackKeys for all keys that begin so.
func (l *Listener) TrackPrefixes(ctx context.Context, prefixes []string) {
	for _, prefix := range prefixes {
		if l.askFor(l.askedPrefix, prefix) {
			l.masters.TrackPrefix(ctx, prefix)
		}
	}
}

// pruneKeys ends at the masters what is remembered no more, now and then: most
// keys are read again soon, and then the masters need not be asked.
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

// ForgetKeys ends at the masters all that was tracked.
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

// askFor notes that the masters are asked for a key or a prefix, if they are not yet
// and there is memory for it.
func (l *Listener) askFor(asked map[string]struct{}, name string) (isNew bool) {
	if _, known := asked[name]; known {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.recall(len(name) + NameOverhead) {
		return false
	}
	asked[name] = struct{}{}
	return true
}

// askNoMore is the end of askFor.
func (l *Listener) askNoMore(asked map[string]struct{}, name string) {
	delete(asked, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recall(-len(name) - NameOverhead)
}
