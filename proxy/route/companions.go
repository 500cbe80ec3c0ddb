package route

import (
	"bytes"

	"redlock-proxy/redlock/resp"
)

// Lock libraries use more keys than the lock: lists of waiters, latches, counters
// and channels. They derive the names from the lock's name. These keys go where the
// lock goes, although no rule matches them. This file knows the names. A rule of
// the configuration may name more.

// SupportProbe is a key that Symfony uses in one script. The script tests whether
// the server allows scripts to call TIME. The answer must come from the lock masters,
// because they run Symfony's scripts on locks.
const SupportProbe = "symfony_check_support_time"

// redissonPrefixes come before the lock's name, as in "redisson_lock_queue:{NAME}".
// An id may follow the name. Redisson omits the braces if the name contains braces.
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

// companionSuffixes come behind the lock's name: the readers and the writer of
// madelson's DistributedLock, and the queue, the readers and the writer of redlock4j.
var companionSuffixes = []string{".readers", ".writer", ":queue", ":readers", ":write"}

// Of tells whether key belongs to the lock masters: a rule matches the key, or
// matches the lock whose companion the key is. rule is nil for a companion.
func (r Rules) Of(db int, key []byte) (rule *Rule, isLock bool) {
	if rule = r.Find(db, key); rule != nil {
		return rule, true
	}
	return nil, r.coversCompanion(db, key)
}

// Covers is Of without the rule.
func (r Rules) Covers(db int, key []byte) bool {
	_, isLock := r.Of(db, key)
	return isLock
}

// CoversChannel is Covers for the name or pattern of a pub/sub channel, which is in
// no database. Two libraries have special names. Spring's channels are
// "REGISTRY-channel:REGISTRY:NAME" and "REGISTRY-channel" for the locks
// "REGISTRY:NAME". The channel of redlock4j's latch NAME is "NAME:channel".
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
	case 'l': // python-redis-lock: clients wait for lock:NAME on lock-signal:NAME
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
	case '{': // Redisson: {NAME}:ID:rwlock_timeout:N, {NAME}:timeout, and {NAME}, to which scripts append
		if name, whole := bytes.CutSuffix(key[1:], []byte("}")); whole {
			return r.Find(db, name) != nil
		}
		name, rest, found := bytes.Cut(key[1:], []byte("}:"))
		if found && (string(rest) == "timeout" || bytes.Contains(rest, []byte(":rwlock_timeout"))) && r.Find(db, name) != nil {
			return true
		}
	}
	if !r.mayBegin(key[0]) {
		return false // the names below all begin with the lock's name
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

// namesCompanion tells whether a rule of the configuration names the key as a
// companion.
func (r Rules) namesCompanion(db int, key []byte) bool {
	for i := range r {
		for _, glob := range r[i].Companions {
			if r[i].in(db) && (glob == "*" || resp.GlobMatch(glob, key)) {
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

// any tells whether some rule applies to the database.
func (r Rules) any(db int) bool {
	for i := range r {
		if r[i].in(db) {
			return true
		}
	}
	return false
}

// findPrefixed and findJoined find a rule for a name that they put together. They
// allocate nothing if the name has at most 128 bytes.
func (r Rules) findPrefixed(db int, prefix string, name []byte) bool {
	var space [128]byte
	return r.Find(db, append(append(space[:0], prefix...), name...)) != nil
}

func (r Rules) findJoined(db int, name []byte, suffix string) bool {
	var space [128]byte
	return r.Find(db, append(append(space[:0], name...), suffix...)) != nil
}
