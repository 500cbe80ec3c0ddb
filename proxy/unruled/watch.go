package unruled

import (
	"hash/maphash"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/scripts"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A Command is one that the proxy forwards. A Watch keeps nothing of it.
type Command struct {
	Name     string   // in lower case
	Args     [][]byte // with the name
	Keys     []int    // the indexes of the arguments that are keys
	DB       int
	Client   Client
	Watching bool          // the client watches keys, so it compares before it deletes
	Script   scripts.Shape // for EVAL and EVALSHA
	Ignored  []string      // globs; a use of a key that one of them matches is not reported
}

// A Client is the connection on which a command came.
type Client interface {
	ID() int64
	Library() string // by its own account; "" if it does not say
}

// A Watch sees the forwarded commands that locks use, and remembers the patterns of keys that are used as locks.
type Watch struct {
	log    *slog.Logger
	seed   maphash.Seed
	writes atomic.Uint64

	mu       sync.Mutex
	recent   recent
	patterns patterns
	uses     int64
	unread   unread
}

// New makes a Watch. It logs each pattern once.
func New(log *slog.Logger) *Watch {
	return &Watch{log: log, seed: maphash.MakeSeed()}
}

// The life of an acquire that does not say how long it lasts. SETNX is short, because a DEL by the same
// connection counts as its release.
const (
	setnxLife   = time.Minute
	unknownLife = time.Hour
)

// mostKeys bounds the keys of one DEL that are looked at.
const mostKeys = 16

// See looks at a command.
func (w *Watch) See(c Command) {
	if len(c.Keys) == 0 {
		return
	}
	switch c.Name {
	case "set":
		switch condition, life := readSet(c.Args[3:]); condition {
		case ifAbsent:
			w.take(c, taken{how: bySet, lasts: life > 0}, life)
		case ifEqual:
			w.giveBack(c, c.Keys[0], byComparison)
		case always:
			w.sample(c.Args[c.Keys[0]])
		}
	case "setex", "psetex":
		w.sample(c.Args[c.Keys[0]])
	case "setnx":
		w.take(c, taken{how: bySetNX, lasts: true}, setnxLife)
	case "delex", "delifeq":
		if len(c.Args) > 2 {
			w.giveBack(c, c.Keys[0], byComparison)
			return
		}
		w.giveBack(c, c.Keys[0], byDeletion)
	case "del", "unlink":
		for _, at := range c.Keys[:min(len(c.Keys), mostKeys)] {
			w.giveBack(c, at, byDeletion)
		}
	case "eval", "evalsha", "fcall":
		if c.Name == "evalsha" && c.Script.ID == 0 && !w.noteUnread(c.Args[1]) {
			return // the upstream may not know the text either, and then the client sends it
		}
		if !w.giveBack(c, c.Keys[0], byScript) && c.Script.Takes {
			w.take(c, taken{how: byText, script: c.Script.ID}, 0)
		}
	}
}

type condition uint8

const (
	always condition = iota
	ifAbsent
	ifEqual
	ifThere
)

// readSet reads the options of SET: its condition, and the TTL. The TTL is 0 if there is none, or if it is no
// positive number.
func readSet(options [][]byte) (is condition, life time.Duration) {
	for i := 0; i < len(options); i++ {
		word := options[i]
		next := func() time.Duration {
			if i++; i < len(options) {
				if n, ok := resp.ParseDecimal(options[i]); ok && n > 0 {
					return time.Duration(min(n, math.MaxInt64/int64(time.Second)))
				}
			}
			return 0
		}
		switch {
		case wire.IsWord(word, "NX"):
			is = ifAbsent
		case wire.IsWord(word, "XX"):
			is = ifThere
		case wire.IsWord(word, "IFEQ") && i+1 < len(options):
			is = ifEqual
			i++
		case wire.IsWord(word, "EX"):
			life = next() * time.Second
		case wire.IsWord(word, "PX"):
			life = min(next(), math.MaxInt64/time.Millisecond) * time.Millisecond
		case wire.IsWord(word, "EXAT"), wire.IsWord(word, "PXAT"):
			if next() > 0 {
				life = unknownLife // the clocks may differ
			}
		}
	}
	return is, life
}

// take remembers that the client took the first key, unless somebody has it: then this was refused.
func (w *Watch) take(c Command, t taken, life time.Duration) {
	if life == 0 {
		life = unknownLife
	}
	now := time.Now()
	t.key, t.client, t.until = w.hash(c.DB, c.Args[c.Keys[0]]), c.Client.ID(), now.Add(life).UnixMilli()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recent.add(t, now.UnixMilli())
}

// giveBack reports a use if a key was taken in a way to which this release belongs.
func (w *Watch) giveBack(c Command, at int, how release) (belongs bool) {
	if how == byDeletion && c.Watching {
		how = byComparison
	}
	found, belongs := w.count(c, c.Args[at], how)
	if found.Match != "" {
		w.log.Warn("keys that look like locks match no lock rule, so they are on the upstream alone; add the rule to locks, or a glob to ignore",
			"rule", found.Rule(), "shape", found.Shape, "library", found.Library)
	}
	return belongs
}

// count returns the pattern if it is new.
func (w *Watch) count(c Command, key []byte, how release) (found Found, belongs bool) {
	hash, now := w.hash(c.DB, key), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.recent.find(hash, now.UnixMilli())
	if t == nil || !t.endsBy(how, c) {
		return Found{}, false
	}
	shape := t.how
	*t = taken{}
	if anyMatches(c.Ignored, key) {
		return Found{}, true
	}
	w.uses++
	pattern := w.patterns.count(key, c.DB, now)
	if pattern == nil || pattern.Shape != "" {
		return Found{}, true
	}
	pattern.Shape = shape.text() + ", then " + how.text(c.Script)
	pattern.Library = strings.ToValidUTF8(c.Client.Library(), "?")
	return *pattern, true
}

// sampleEvery says of how many writes one is looked at.
const sampleEvery = 64

// sample looks at some of the writes that ask for no holder. Where a pattern matches their keys, its keys are not
// all locks.
func (w *Watch) sample(key []byte) {
	if w.writes.Add(1)%sampleEvery != 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patterns.mark(key)
}

// UnreadNotice is for operators, if Unread.
const UnreadNotice = "clients run scripts by EVALSHA whose texts no client has sent through this proxy, so it cannot tell whether they take locks; SCRIPT FLUSH at the upstream makes clients send the texts"

// Unread tells whether scripts were run for some time whose texts are unknown.
func (w *Watch) Unread() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unread.lasts
}

// noteUnread tells whether the script's text stays unknown.
func (w *Watch) noteUnread(sha []byte) bool {
	hash, now := w.hash(0, sha), time.Now()
	w.mu.Lock()
	lasts, first := w.unread.add(hash, now.UnixMilli())
	w.mu.Unlock()
	if first {
		w.log.Info(UnreadNotice)
	}
	return lasts
}

// Found returns the patterns that no rule covers now and no glob ignores, the most used first.
func (w *Watch) Found(rules route.Rules, ignored []string) []Found {
	w.mu.Lock()
	list := w.patterns.list(rules, ignored)
	w.mu.Unlock()
	slices.SortFunc(list, Found.compare)
	return list
}

// Uses is the number of uses of all patterns, and of keys for whose pattern there was no room.
func (w *Watch) Uses() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.uses
}

func (w *Watch) hash(db int, key []byte) uint64 {
	// The database is mixed in afterwards, so that nothing is copied. 0 marks a free place.
	return max(1, maphash.Bytes(w.seed, key)+uint64(db)*0x9e3779b97f4a7c15)
}
