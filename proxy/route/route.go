package route

import (
	"slices"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// markerKey is the masters' marker. No client may touch it, whatever the rules match.
const markerKey = redlock.MarkerKey

// Plane says who answers a command.
type Plane uint8

const (
	Upstream Plane = iota // there is no lock key
	Locks                 // every key is a lock key, or the command is unknown and an argument is one
	Split                 // keys of both kinds, in a command that can be answered in two halves
	Cross                 // keys of both kinds, in a command that must be refused
)

// Route says where one command goes. Many routes may share its slices. Callers may
// keep the slices, but must not write to them.
type Route struct {
	Plane Plane
	Spec  *Spec  // nil if the command is unknown
	Keys  []int  // the indexes of the arguments that are keys
	Lock  []bool // for each of Keys, whether it is a lock key
	Rule  *Rule  // of the first lock key; nil: there is none, or it is only a companion of locks

	// Malformed is true if the arguments do not say where the keys are: there are
	// too few, too many, or the count of keys is wrong. Keys then holds all that may
	// have been meant as keys. If one of them is a lock key, the plane is Locks, and
	// the command can only be answered with Redis's error.
	Malformed bool
	// Ordinary is true if who answers depends on one key only, and on nothing else.
	Ordinary bool
	// Elsewhere is true if the command moves or copies a lock key to another
	// database, or a key to a place where it would be a lock key. It must be refused
	// on every plane.
	Elsewhere bool
	// Reserved is true if the command touches markerKey. It must be refused on every
	// plane.
	Reserved bool
}

// Router decides where commands go. It never changes, and any number of sessions may
// use it. A new table or new rules make a new router.
type Router struct {
	Table      *Table
	Rules      Rules
	Moves      []Move // changes of the rules that may still hold keys back
	Generation int    // the number of changes that moved keys
}

// Route finds a command's keys and plane. db is the database that the session
// selected. Route never writes to args and keeps no part of them. It allocates only if
// there are keys of both kinds, if there are more than inlineKeys keys, or if the keys
// are neither consecutive arguments nor every other one, as in MSET.
func (r *Router) Route(db int, args [][]byte) Route {
	spec := r.Table.Lookup(args)
	if spec == nil {
		return r.routeUnknown(db, args)
	}
	if at := spec.onlyKey; at > 0 && spec.ArityOK(len(args)) {
		to := Route{Spec: spec, Keys: consecutive[at : at+1 : at+1], Lock: noneLock[:1:1], Ordinary: true, Reserved: string(args[at]) == markerKey}
		if rule, isLock := r.Rules.Of(db, args[at]); isLock {
			to.Plane, to.Lock, to.Rule = Locks, allLock[:1:1], rule
		}
		return to
	}
	return r.routeKeys(db, args, spec)
}

// routeUnknown is Route for a command that the table does not have. Any of its arguments may be
// a key. So the command may not go to the upstream if one of them is a lock key.
func (r *Router) routeUnknown(db int, args [][]byte) Route {
	var to Route
	for _, arg := range args[min(1, len(args)):] {
		to.Reserved = to.Reserved || string(arg) == markerKey
		if r.Rules.Covers(db, arg) {
			to.Plane = Locks
		}
	}
	return to
}

// routeKeys is Route for any command that is known.
func (r *Router) routeKeys(db int, args [][]byte, spec *Spec) Route {
	var space [inlineKeys]int
	keys, exact := spec.AppendKeys(space[:0], args)
	named := len(keys)
	to := Route{Spec: spec, Malformed: !exact}
	var lockSpace [inlineKeys]bool
	lock, locks := lockSpace[:0], 0
	for _, at := range keys {
		rule, isLock := r.Rules.Of(db, args[at])
		if isLock {
			if locks == 0 {
				to.Rule = rule
			}
			locks++
		}
		lock = append(lock, isLock)
		to.Reserved = to.Reserved || string(args[at]) == markerKey
	}
	scriptLocks := 0
	if spec.Is(Script) && exact {
		for at := 3 + named; at < len(args); at++ {
			to.Reserved = to.Reserved || string(args[at]) == markerKey
			if rule, isLock := r.namedLock(db, args[at], named); isLock {
				if locks+scriptLocks == 0 {
					to.Rule = rule
				}
				keys, lock = append(keys, at), append(lock, true)
				scriptLocks++
			}
		}
	}
	switch {
	case locks+scriptLocks == 0:
		to.Plane = Upstream
	case locks == named || !exact:
		to.Plane = Locks
	case spec.Is(Splits):
		to.Plane = Split
	default:
		to.Plane = Cross
	}
	if spec.Is(Elsewhere) && len(args) > 2 { // MOVE has more options in newer servers
		to.Elsewhere = r.leadsElsewhere(db, args, keys)
	}
	to.Keys, to.Lock = shareIndexes(keys), shareFlags(lock, locks+scriptLocks)
	return to
}

// leadsElsewhere tells whether COPY or MOVE names another database and a lock key,
// here or there. A key in another database is another lock. A client of this database
// could neither see it nor release it.
func (r *Router) leadsElsewhere(db int, args [][]byte, keys []int) bool {
	other, named := otherDatabase(args, keys)
	if !named || other == int64(db) {
		return false
	}
	return r.Rules.Covers(db, args[keys[0]]) || r.Rules.Covers(int(other), args[keys[len(keys)-1]])
}

// otherDatabase returns the database that COPY key key [DB n] or MOVE key n ... names. It
// returns false if the command names none.
func otherDatabase(args [][]byte, keys []int) (db int64, named bool) {
	if len(keys) == 1 {
		return resp.ParseDecimal(args[2])
	}
	for i := 3; i < len(args)-1; i++ {
		if wire.IsWord(args[i], "DB") {
			i++
			db, named = resp.ParseDecimal(args[i])
		}
	}
	return db, named
}

// namedLock is Rules.Of for an argument behind a script's keys. Some
// libraries name their lock there. named is the number of the script's keys. A rule
// that matches everything does not show that an argument is a key, so such a rule
// counts only if the script has no keys.
func (r *Router) namedLock(db int, arg []byte, named int) (rule *Rule, isLock bool) {
	rule, isLock = r.Rules.Of(db, arg)
	return rule, isLock && (rule == nil || rule.Match != "*" || named == 0)
}

const (
	inlineKeys = 16  // keys that a route collects on the stack
	sharedKeys = 128 // keys that the shared slices have room for
)

// The slices that nearly all routes share: consecutive indexes, every other
// index from 1 and from 2, and the same flag for all keys.
var (
	consecutive = indexes(0, 1)
	oddIndexes  = indexes(1, 2)
	evenIndexes = indexes(2, 2)
	noneLock    = slices.Repeat([]bool{false}, sharedKeys)
	allLock     = slices.Repeat([]bool{true}, sharedKeys)
)

func indexes(first, step int) []int {
	list := make([]int, sharedKeys)
	for i := range list {
		list[i] = first + i*step
	}
	return list
}

// shareIndexes returns the keys in memory that the route may keep: in one of the
// shared slices if possible, else in a copy.
func shareIndexes(keys []int) []int {
	if len(keys) == 0 {
		return nil
	}
	series, from := consecutive, keys[0]
	if len(keys) > 1 && keys[1]-keys[0] == 2 {
		series, from = oddIndexes, 0
		if keys[0] == 2 {
			series = evenIndexes
		}
	}
	if end := from + len(keys); end <= sharedKeys && slices.Equal(keys, series[from:end]) {
		return series[from:end:end]
	}
	return slices.Clone(keys)
}

// shareFlags does the same for lock, in which set flags are true.
func shareFlags(lock []bool, set int) []bool {
	n := len(lock)
	switch {
	case n == 0:
		return nil
	case n <= sharedKeys && set == 0:
		return noneLock[:n:n]
	case n <= sharedKeys && set == n:
		return allLock[:n:n]
	}
	return slices.Clone(lock)
}
