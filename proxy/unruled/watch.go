package unruled

import (
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A Command is one that the proxy forwards. A Watch keeps nothing of it.
type Command struct {
	Name   string   // in lower case
	Args   [][]byte // with the name
	Keys   []int    // the indexes of the arguments that are keys
	DB     int
	Script Shape // for EVAL and EVALSHA
	Now    int64 // a coarse time in ns, from any beginning

	Connection int64    // the number of the one on which it came
	Library    string   // of the client, by its own account; "" if it does not say
	Watches    bool     // the client watches keys, so it compares before it deletes
	Ignored    []string // globs; a use of a key that one of them matches is not reported
}

// A Watch sees the forwarded commands that locks use, and remembers the patterns of keys that are used as locks.
type Watch struct {
	log    *slog.Logger
	seed   maphash.Seed
	writes atomic.Uint64
	uses   atomic.Int64
	recent recent

	mu       sync.Mutex
	patterns patterns
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
func (w *Watch) See(c *Command) {
	if len(c.Keys) == 0 {
		return
	}
	switch c.Name {
	case "set":
		switch condition, ttl := readSet(c.Args); condition {
		case ifAbsent:
			w.take(c, bySet, ttl)
		case ifEqual:
			w.giveBack(c, c.Keys[0], byComparison)
		case always:
			w.sample(c)
		}
	case "setex", "psetex":
		w.sample(c)
	case "setnx":
		w.take(c, bySetNX, 0)
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
		if c.Name == "evalsha" && c.Script.ID == 0 && !w.noteUnread(c) {
			return // the upstream may not know the text either, and then the client sends it
		}
		if !w.giveBack(c, c.Keys[0], byScript) && c.Script.Takes {
			w.take(c, byText, 0)
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

// readSet reads the options of SET: its condition, and where the last TTL's unit is. This is 0 if there is none.
func readSet(args [][]byte) (is condition, ttl int) {
	for i := 3; i < len(args); i++ {
		switch word := args[i]; {
		case len(word) == 2 && word[1]|0x20 == 'x':
			switch word[0] | 0x20 {
			case 'n':
				is = ifAbsent
			case 'x':
				is = ifThere
			case 'e', 'p':
				ttl = i
				i++
			}
		case len(word) != 4:
		case wire.IsWord(word, "EXAT"), wire.IsWord(word, "PXAT"):
			ttl = i
			i++
		case wire.IsWord(word, "IFEQ") && i+1 < len(args):
			is = ifEqual
			i++
		}
	}
	return is, ttl
}

// readLife returns the TTL whose unit is there. It is 0 if there is none, or if it is no positive number.
func readLife(args [][]byte, ttl int) time.Duration {
	if ttl == 0 || ttl+1 == len(args) {
		return 0
	}
	n, ok := resp.ParseDecimal(args[ttl+1])
	switch unit := args[ttl]; {
	case !ok || n <= 0:
		return 0
	case wire.IsWord(unit, "EX"):
		return time.Duration(min(n, int64(longestLife/time.Second))) * time.Second
	case wire.IsWord(unit, "PX"):
		return time.Duration(min(n, int64(longestLife/time.Millisecond))) * time.Millisecond
	}
	return unknownLife // the clocks may differ
}

// take remembers that the client took the first key, unless somebody has it: then this was refused. ttl is what
// readSet says of a SET. Only a script replaces a script, because one that releases may look like one that takes, and
// belongs to the next that takes.
func (w *Watch) take(c *Command, how acquire, ttl int) {
	key := w.hash(c.DB, c.Args[c.Keys[0]])
	if old, ok := w.recent.find(key, c.Now); ok && (how != byText || old.how() != byText) {
		return
	}
	by, life := uint64(c.Connection), setnxLife
	switch how {
	case bySet:
		if life = readLife(c.Args, ttl); life == 0 {
			by, life = nobody, unknownLife
		}
	case byText:
		by, life = c.Script.ID, unknownLife
	}
	w.recent.add(key, newTaken(how, by, c.Now, life))
}

// giveBack reports a use if a key was taken in a way to which this release belongs.
func (w *Watch) giveBack(c *Command, at int, how release) (belongs bool) {
	key := w.hash(c.DB, c.Args[at])
	t, ok := w.recent.find(key, c.Now)
	if !ok {
		return false
	}
	if how == byDeletion && c.Watches {
		how = byComparison
	}
	if !t.endsBy(how, c) || !w.recent.remove(key) {
		return false
	}
	if anyMatches(c.Ignored, c.Args[at]) {
		return true
	}
	w.uses.Add(1)
	if found := w.count(c, c.Args[at], t.how(), how); found.Match != "" {
		w.log.Warn("keys that look like locks match no lock rule, so they are on the upstream alone; add the rule to locks, or a glob to ignore",
			"rule", found.Rule(), "shape", found.Shape, "library", found.Library)
	}
	return true
}

// count returns the pattern if it is new.
func (w *Watch) count(c *Command, key []byte, how acquire, release release) (found Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pattern := w.patterns.count(key, c.DB, time.Now())
	if pattern == nil || pattern.Shape != "" {
		return Found{}
	}
	pattern.Shape = how.text() + ", then " + release.text(c.Script)
	pattern.Library = strings.ToValidUTF8(c.Library, "?")
	return *pattern
}

// sampleEvery says of how many writes one is looked at.
const sampleEvery = 64

// sample looks at some of the writes that ask for no holder. Where a pattern matches their keys, its keys are not
// all locks.
func (w *Watch) sample(c *Command) {
	if w.uses.Load() == 0 || w.writes.Add(1)%sampleEvery != 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patterns.mark(c.Args[c.Keys[0]])
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
func (w *Watch) noteUnread(c *Command) bool {
	hash := w.hash(0, c.Args[1])
	w.mu.Lock()
	lasts, first := w.unread.add(hash, c.Now/int64(time.Millisecond))
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
func (w *Watch) Uses() int64 { return w.uses.Load() }

func (w *Watch) hash(db int, key []byte) uint64 {
	// The database is mixed in afterwards, so that nothing is copied. 0 marks a free place.
	return max(1, maphash.Bytes(w.seed, key)+uint64(db)*0x9e3779b97f4a7c15)
}
