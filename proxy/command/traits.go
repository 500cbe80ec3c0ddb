package command

import "strings"

// Traits set commands apart that are not treated like all others. COMMAND says
// nothing of them.
type Traits uint16

const (
	Sort            Traits = 1 << iota // its keys are found by hand
	Migrate                            // its keys are found by hand
	Script                             // arguments behind the keys may name keys too
	Split                              // can be answered in two halves
	Elsewhere                          // may write a key in another database
	Subscription                       // is answered by confirmations
	InSubscribeMode                    // allowed in RESP2's subscribe mode
	BeforeAuth                         // needs no login
	ForLockers                         // has no keys, and is allowed to who may only lock
	OnMasters                          // has no keys, and may stand in a transaction on lock keys
	NeverOnLocks                       // is refused on lock keys
	LeavesProtocol                     // after it a connection carries something else than commands and replies
	Uncountable                        // answers EXEC otherwise than with one element, or changes later replies
)

// byHand: what there is to a command beside its key specifications decides who
// performs it.
const byHand = Sort | Migrate | Script | Split | Elsewhere

// commandTraits are the traits of all commands that have some.
//
// Who may only lock is given what lock libraries send, none of which changes
// the upstream or tells of its keys. What stands in a transaction on lock keys
// is run by the masters, so it must do no more there than answer: nothing that
// a client sends may flush them or change how they work. A function's text is
// the upstream's, and MIGRATE would take a lock from its masters.
var commandTraits = map[string]Traits{
	"sort":    Sort,
	"migrate": Migrate | NeverOnLocks,

	"eval":       Script,
	"evalsha":    Script,
	"eval_ro":    Script,
	"evalsha_ro": Script,
	"fcall":      Script | NeverOnLocks,
	"fcall_ro":   Script | NeverOnLocks,

	"del":    Split,
	"unlink": Split,
	"exists": Split,
	"touch":  Split,
	"mget":   Split,
	"copy":   Elsewhere,
	"move":   Elsewhere,

	"subscribe":    Subscription | InSubscribeMode | Uncountable,
	"psubscribe":   Subscription | InSubscribeMode | Uncountable,
	"ssubscribe":   Subscription | InSubscribeMode | Uncountable,
	"unsubscribe":  Subscription | InSubscribeMode | Uncountable | ForLockers,
	"punsubscribe": Subscription | InSubscribeMode | Uncountable | ForLockers,
	"sunsubscribe": Subscription | InSubscribeMode | Uncountable | ForLockers,
	"publish":      OnMasters,
	"spublish":     OnMasters,

	"auth":  BeforeAuth,
	"hello": BeforeAuth | Uncountable,
	"quit":  BeforeAuth | InSubscribeMode,
	"reset": BeforeAuth | InSubscribeMode,

	"ping":   ForLockers | OnMasters | InSubscribeMode,
	"echo":   ForLockers | OnMasters,
	"time":   ForLockers | OnMasters,
	"select": ForLockers,
	"info":   ForLockers,
	"role":   ForLockers,
	"wait":   ForLockers,

	"multi":   ForLockers,
	"exec":    ForLockers,
	"discard": ForLockers,
	"unwatch": ForLockers,

	"script|load":   ForLockers,
	"script|exists": ForLockers,
	"script|debug":  LeavesProtocol,
	"sync":          LeavesProtocol,
	"psync":         LeavesProtocol,
	"replconf":      LeavesProtocol,
	"monitor":       Uncountable,

	"command":         ForLockers,
	"command|count":   ForLockers,
	"command|docs":    ForLockers,
	"command|info":    ForLockers,
	"command|getkeys": ForLockers,
	"command|list":    ForLockers,

	"client|id":           ForLockers,
	"client|info":         ForLockers,
	"client|getname":      ForLockers,
	"client|setname":      ForLockers,
	"client|setinfo":      ForLockers,
	"client|no-evict":     ForLockers,
	"client|no-touch":     ForLockers,
	"client|reply":        ForLockers,
	"client|tracking":     ForLockers,
	"client|caching":      ForLockers,
	"client|trackinginfo": ForLockers,
	"client|getredir":     ForLockers,

	"cluster|info":   ForLockers,
	"cluster|nodes":  ForLockers,
	"cluster|slots":  ForLockers,
	"cluster|shards": ForLockers,
	"cluster|myid":   ForLockers,
}

// traitsOf are the traits of a command by its full name. CLIENT may change how
// replies look with any subcommand, known here or not.
func traitsOf(name string) Traits {
	of := commandTraits[name]
	if strings.HasPrefix(name, "client|") {
		of |= Uncountable
	}
	return of
}

// Is tells whether a command has one of these traits. An unknown command, which
// is nil, has none.
func (s *Spec) Is(any Traits) bool { return s != nil && s.traits&any != 0 }
