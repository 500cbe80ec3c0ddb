package route

import "bytes"

// Lock libraries keep more than the lock: lists of waiters, latches, counters
// and channels whose names they derive from the lock's. These go where the
// lock goes, although no rule matches them; this file knows the names. A rule
// may name others.

// SupportProbe is the key on which Symfony tries out, in one script, whether
// the server that runs its scripts lets them ask for the time. Its locks'
// servers are the ones to ask.
const SupportProbe = "symfony_check_support_time"

// redissonPrefixes stand before the lock's name as in
// "redisson_lock_queue:{NAME}"; behind it an id may follow. Redisson leaves
// the braces out where the name has some of its own.
var redissonPrefixes = []string{
	"redisson_lock_queue:",
	"redisson_lock_timeout:",
	"redisson_lock_token:",
	"redisson_lock__channel:",
	"redisson_unlock_latch:",
	"redisson_rwlock:",
	"redisson_sc:",
	"redisson_countdownlatch__channel__",
}

// companionSuffixes stand behind the lock's name: madelson's readers and
// writers, redlock4j's queue, readers and writer.
var companionSuffixes = []string{".readers", ".writer", ":queue", ":readers", ":write"}

// Covers says whether key belongs to the lock masters: a rule matches it or
// the lock that it is a companion of.
func (r Rules) Covers(db int, key []byte) bool {
	return r.Find(db, key) != nil || r.coversCompanion(db, key)
}

// CoversChannel is covers for the name or pattern of a pub/sub channel, which
// is in no database. Spring's "REGISTRY-channel:REGISTRY:NAME" and the plain
// "REGISTRY-channel" belong to the locks "REGISTRY:NAME"; redlock4j's latch
// NAME has "NAME:channel".
func (r Rules) CoversChannel(channel []byte) bool {
	if r.Covers(AnyDB, channel) {
		return true
	}
	if name, found := bytes.CutSuffix(channel, []byte(":channel")); found && r.Find(AnyDB, name) != nil {
		return true
	}
	const mark = "-channel"
	registry, rest, found := bytes.Cut(channel, []byte(mark))
	if !found || len(rest) > 0 && rest[0] != ':' {
		return false
	}
	return len(rest) > 1 && r.Find(AnyDB, rest[1:]) != nil || r.findJoined(AnyDB, registry, ":")
}

func (r Rules) coversCompanion(db int, key []byte) bool {
	if len(key) == 0 || len(r) == 0 {
		return false
	}
	if r.namesCompanion(db, key) {
		return true
	}
	switch key[0] {
	case 'l': // python-redis-lock: lock:NAME is waited for on lock-signal:NAME
		if name, found := bytes.CutPrefix(key, []byte("lock-signal:")); found {
			return r.findPrefixed(db, "lock:", name)
		}
	case 'r':
		if bytes.HasPrefix(key, []byte("redisson_")) {
			return r.coversRedisson(db, key)
		}
	case 's':
		if string(key) == SupportProbe {
			return r.any(db)
		}
	case '{': // Redisson's {NAME}:ID:rwlock_timeout:N, {NAME}:timeout, and {NAME}, which its scripts lengthen
		if name, whole := bytes.CutSuffix(key[1:], []byte("}")); whole {
			return r.Find(db, name) != nil
		}
		name, rest, found := bytes.Cut(key[1:], []byte("}:"))
		if found && (string(rest) == "timeout" || bytes.Contains(rest, []byte(":rwlock_timeout"))) && r.Find(db, name) != nil {
			return true
		}
	}
	if !r.mayBegin(key[0]) {
		return false // all that follows begins with the lock's name
	}
	for _, suffix := range companionSuffixes {
		if name, found := bytes.CutSuffix(key, []byte(suffix)); found {
			return r.Find(db, name) != nil
		}
	}
	// redlock4j: one key for each reader
	if name, _, found := bytes.Cut(key, []byte(":readers:")); found {
		return r.Find(db, name) != nil
	}
	return false
}

// namesCompanion: a rule's configuration says that the key goes with its locks.
func (r Rules) namesCompanion(db int, key []byte) bool {
	for i := range r {
		for _, glob := range r[i].Companions {
			if r[i].in(db) && !r[i].denied && (glob == "*" || GlobMatch(glob, key)) {
				return true
			}
		}
	}
	return false
}

func (r Rules) coversRedisson(db int, key []byte) bool {
	for _, prefix := range redissonPrefixes {
		name, found := bytes.CutPrefix(key, []byte(prefix))
		if !found {
			continue
		}
		if inner, braced := bytes.CutPrefix(name, []byte("{")); braced {
			if inner, _, found = bytes.Cut(inner, []byte("}")); found && r.Find(db, inner) != nil {
				return true
			}
		}
		if r.Find(db, name) != nil {
			return true
		}
		colon := bytes.LastIndexByte(name, ':')
		return colon > 0 && r.Find(db, name[:colon]) != nil
	}
	return false
}

// any: some rule holds in that database.
func (r Rules) any(db int) bool {
	for i := range r {
		if r[i].in(db) && !r[i].denied {
			return true
		}
	}
	return false
}

// findPrefixed and findJoined look for a name put together in place, without
// allocating where it is of usual length.
func (r Rules) findPrefixed(db int, prefix string, name []byte) bool {
	var space [128]byte
	return r.Find(db, append(append(space[:0], prefix...), name...)) != nil
}

func (r Rules) findJoined(db int, name []byte, suffix string) bool {
	var space [128]byte
	return r.Find(db, append(append(space[:0], name...), suffix...)) != nil
}
