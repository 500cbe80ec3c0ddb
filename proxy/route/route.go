package route

import (
	"slices"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// markerKey is what no client may touch, whatever the rules match.
const markerKey = redlock.MarkerKey

// Plane says who answers a command.
type Plane uint8

const (
	Upstream Plane = iota // no key is a lock key, or there is no key, or nobody knows the command
	Locks                 // every key is a lock key
	Split                 // keys of both kinds, in a command that can be answered in two halves
	Cross                 // keys of both kinds, to be refused
)

// Route is where one command goes. Its slices may be shared by many routes:
// nobody may write to them, and everybody may keep them.
type Route struct {
	Plane Plane
	Spec  *command.Spec // nil: unknown
	Keys  []int         // the indexes of the arguments that are keys
	Lock  []bool        // beside keys: is it a lock key?

	// malformed: the arguments do not say where the keys are (too few, too
	// many, a wrong count), and keys are those that could have been meant. If
	// one of these is a lock key the plane is planeLock, and all there is to
	// do is to answer Redis's error.
	malformed bool
	// Ordinary: nothing but its one key says who performs the command.
	Ordinary bool
	// Elsewhere: the command takes a lock key to another database, or a key to
	// where it is one, and is to be refused whatever the plane.
	Elsewhere bool
	// Reserved: the command touches markerKey and is to be refused whatever
	// the plane.
	Reserved bool
}

// Router decides where commands go. It never changes and any number of
// sessions may use it; an extended table or new rules make a new one.
type Router struct {
	Table *command.Table
	Rules Rules
	Moves []Move // changes of the rules that still hold keys back
	Era   int    // counts such changes
}

// Route finds a command's plane by its keys, in the database that its session
// has selected. It never writes to args and keeps nothing of them. It
// allocates only where the keys are of both kinds, or do not lie side by side
// (or one apart, as in MSET), or are more than inlineKeys.
func (r *Router) Route(db int, args [][]byte) Route {
	spec := r.Table.Lookup(args)
	if spec == nil {
		return Route{}
	}
	if at := spec.OnlyKey(); at > 0 && at < sharedKeys && spec.ArityOK(len(args)) {
		to := Route{Spec: spec, Keys: consecutive[at : at+1 : at+1], Lock: noneLock[:1:1], Ordinary: true, Reserved: string(args[at]) == markerKey}
		if r.Rules.Covers(db, args[at]) {
			to.Plane, to.Lock = Locks, allLock[:1:1]
		}
		return to
	}
	return r.routeKeys(db, args, spec)
}

// routeKeys is route for any command.
func (r *Router) routeKeys(db int, args [][]byte, spec *command.Spec) Route {
	var space [inlineKeys]int
	keys, exact := spec.AppendKeys(space[:0], args)
	named := len(keys)
	to := Route{Spec: spec, malformed: !exact}
	var lockSpace [inlineKeys]bool
	lock, locks := lockSpace[:0], 0
	for _, at := range keys {
		covered := r.Rules.Covers(db, args[at])
		if covered {
			locks++
		}
		lock = append(lock, covered)
		to.Reserved = to.Reserved || string(args[at]) == markerKey
	}
	scriptLocks := 0
	if spec.Is(command.Script) && exact {
		for at := 3 + named; at < len(args); at++ {
			to.Reserved = to.Reserved || string(args[at]) == markerKey
			if r.namesLock(db, args[at], named) {
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
	case spec.Is(command.Split):
		to.Plane = Split
	default:
		to.Plane = Cross
	}
	if spec.Is(command.Elsewhere) && exact {
		to.Elsewhere = r.leadsElsewhere(db, args, keys)
	}
	to.Keys, to.Lock = shareIndexes(keys), shareFlags(lock, locks+scriptLocks)
	return to
}

// leadsElsewhere says whether COPY or MOVE has to do with a lock key and another
// database. A lock that is there is another lock, and a client of this database
// could neither see it nor give it back.
func (r *Router) leadsElsewhere(db int, args [][]byte, keys []int) bool {
	other, named := otherDatabase(args, keys)
	if !named || other == int64(db) {
		return false
	}
	return r.Rules.Covers(db, args[keys[0]]) || r.Rules.Covers(int(other), args[keys[len(keys)-1]])
}

// otherDatabase is the one that COPY key key [DB n] or MOVE key n names.
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

// namesLock says whether an argument behind a script's keys is a lock key that
// the script names there, as some libraries do. A rule that matches everything
// says nothing about an argument, so it counts only where no key was named.
func (r *Router) namesLock(db int, arg []byte, named int) bool {
	if rule := r.Rules.Find(db, arg); rule != nil {
		return rule.Match != "*" || named == 0
	}
	return r.Rules.coversCompanion(db, arg)
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

// shareIndexes is keys, in memory that outlives the caller's.
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

// shareFlags is lock, in which that many flags are set, likewise.
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
