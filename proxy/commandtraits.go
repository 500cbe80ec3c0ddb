package proxy

import "strings"

// traits set commands apart that are not treated like all others. COMMAND says
// nothing of them.
type traits uint16

const (
	traitSort         traits = 1 << iota // its keys are found by hand
	traitMigrate                         // its keys are found by hand
	traitScript                          // arguments behind the keys may name keys too
	traitSplit                           // can be answered in two halves
	traitElsewhere                       // may write a key in another database
	traitSubscription                    // is answered by confirmations
	traitRestricted                      // allowed in RESP2's subscribe mode
	traitBeforeAuth                      // needs no login
	traitForLockers                      // has no keys, and is allowed to who may only lock
	traitOnMasters                       // has no keys, and may stand in a transaction on lock keys
	traitNeverOnLocks                    // is refused on lock keys
	traitNotProtocol                     // after it a connection carries something else than commands and replies
	traitNotCounted                      // answers EXEC otherwise than with one element, or changes later replies
)

// byHand: what there is to a command beside its key specifications decides who
// performs it.
const byHand = traitSort | traitMigrate | traitScript | traitSplit | traitElsewhere

// commandTraits are the traits of all commands that have some.
//
// Who may only lock is given what lock libraries send, none of which changes
// the upstream or tells of its keys. What stands in a transaction on lock keys
// is run by the masters, so it must do no more there than answer: nothing that
// a client sends may flush them or change how they work. A function's text is
// the upstream's, and MIGRATE would take a lock from its masters.
var commandTraits = map[string]traits{
	"sort":    traitSort,
	"migrate": traitMigrate | traitNeverOnLocks,

	"eval":       traitScript,
	"evalsha":    traitScript,
	"eval_ro":    traitScript,
	"evalsha_ro": traitScript,
	"fcall":      traitScript | traitNeverOnLocks,
	"fcall_ro":   traitScript | traitNeverOnLocks,

	"del":    traitSplit,
	"unlink": traitSplit,
	"exists": traitSplit,
	"touch":  traitSplit,
	"mget":   traitSplit,
	"copy":   traitElsewhere,
	"move":   traitElsewhere,

	"subscribe":    traitSubscription | traitRestricted | traitNotCounted,
	"psubscribe":   traitSubscription | traitRestricted | traitNotCounted,
	"ssubscribe":   traitSubscription | traitRestricted | traitNotCounted,
	"unsubscribe":  traitSubscription | traitRestricted | traitNotCounted | traitForLockers,
	"punsubscribe": traitSubscription | traitRestricted | traitNotCounted | traitForLockers,
	"sunsubscribe": traitSubscription | traitRestricted | traitNotCounted | traitForLockers,
	"publish":      traitOnMasters,
	"spublish":     traitOnMasters,

	"auth":  traitBeforeAuth,
	"hello": traitBeforeAuth | traitNotCounted,
	"quit":  traitBeforeAuth | traitRestricted,
	"reset": traitBeforeAuth | traitRestricted,

	"ping":   traitForLockers | traitOnMasters | traitRestricted,
	"echo":   traitForLockers | traitOnMasters,
	"time":   traitForLockers | traitOnMasters,
	"select": traitForLockers,
	"info":   traitForLockers,
	"role":   traitForLockers,
	"wait":   traitForLockers,

	"multi":   traitForLockers,
	"exec":    traitForLockers,
	"discard": traitForLockers,
	"unwatch": traitForLockers,

	"script|load":   traitForLockers,
	"script|exists": traitForLockers,
	"script|debug":  traitNotProtocol,
	"sync":          traitNotProtocol,
	"psync":         traitNotProtocol,
	"replconf":      traitNotProtocol,
	"monitor":       traitNotCounted,

	"command":         traitForLockers,
	"command|count":   traitForLockers,
	"command|docs":    traitForLockers,
	"command|info":    traitForLockers,
	"command|getkeys": traitForLockers,
	"command|list":    traitForLockers,

	"client|id":           traitForLockers,
	"client|info":         traitForLockers,
	"client|getname":      traitForLockers,
	"client|setname":      traitForLockers,
	"client|setinfo":      traitForLockers,
	"client|no-evict":     traitForLockers,
	"client|no-touch":     traitForLockers,
	"client|reply":        traitForLockers,
	"client|tracking":     traitForLockers,
	"client|caching":      traitForLockers,
	"client|trackinginfo": traitForLockers,
	"client|getredir":     traitForLockers,

	"cluster|info":   traitForLockers,
	"cluster|nodes":  traitForLockers,
	"cluster|slots":  traitForLockers,
	"cluster|shards": traitForLockers,
	"cluster|myid":   traitForLockers,
}

// traitsOf are the traits of a command by its full name. CLIENT may change how
// replies look with any subcommand, known here or not.
func traitsOf(name string) traits {
	of := commandTraits[name]
	if strings.HasPrefix(name, "client|") {
		of |= traitNotCounted
	}
	return of
}

// is tells whether a command has one of these traits. An unknown command, which
// is nil, has none.
func (s *commandSpec) is(any traits) bool { return s != nil && s.traits&any != 0 }
