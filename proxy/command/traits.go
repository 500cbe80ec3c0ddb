package command

import "strings"

// Traits are a set of reasons to treat a command differently from others. A reply to
// COMMAND does not contain them.
type Traits uint32

const (
	Sort            Traits = 1 << iota // code in keys.go finds its keys
	Migrate                            // code in keys.go finds its keys
	Conditions                         // code in keys.go finds its keys
	Script                             // arguments behind the keys may name keys, too
	Split                              // can be answered in two halves
	Elsewhere                          // may write a key in another database
	Subscription                       // gets confirmations instead of a reply
	InSubscribeMode                    // allowed in RESP2's subscribe mode
	BeforeAuth                         // needs no login
	ForLockers                         // has no keys; users who may only use locks may send it
	OnMasters                          // has no keys; allowed in a transaction on lock keys
	NeverOnLocks                       // refused on lock keys
	LeavesProtocol                     // the connection then no longer carries commands and replies
	Uncountable                        // adds none or several elements to EXEC's reply, or changes later replies
	Console                            // the proxy's own REDLOCK
	AboutClients                       // about the sessions of the proxy, which the upstream does not know
	Shareable                          // may go over a connection that other clients use, too (shareable.go)
	Locking                            // takes a lock or gives it back, in some library; or writes like SET, but no lock
)

// specialKeys are the traits of commands whose plane does not follow from their key
// specifications alone.
const specialKeys = Sort | Migrate | Conditions | Script | Split | Elsewhere

// commandTraits holds the traits of all commands that have any.
//
// ForLockers: users who may only use locks may send what lock libraries send. None of
// these commands changes the upstream or reveals its keys.
//
// Console: only users who may use locks may send them. Those that show other clients are
// not ForLockers, so they need both rights.
//
// OnMasters: the masters run the commands in a transaction on lock keys. So these
// commands must only answer. Nothing that a client sends may flush the masters or
// change how they work.
//
// NeverOnLocks: only the upstream has the text of a function, and MIGRATE would take
// a lock away from its masters. HIMPORT SET uses what an earlier command left on its
// connection. The proxy waits itself for lists, and does not know how BLMOVEM does.
var commandTraits = map[string]Traits{
	"sort":    Sort,
	"migrate": Migrate | NeverOnLocks,

	"blmovem":     NeverOnLocks,
	"himport|set": NeverOnLocks,

	"eval":       Script | Locking,
	"evalsha":    Script | Locking,
	"eval_ro":    Script,
	"evalsha_ro": Script,
	"fcall":      Script | NeverOnLocks | Locking,
	"fcall_ro":   Script | NeverOnLocks,

	"set":     Locking,
	"setnx":   Locking,
	"setex":   Locking,
	"psetex":  Locking,
	"delex":   Locking,
	"delifeq": Locking,
	"del":     Split | Locking,
	"unlink":  Split | Locking,
	"exists":  Split,
	"touch":   Split,
	"mget":    Split,
	"copy":    Elsewhere,
	"move":    Elsewhere,

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
	"exec":    ForLockers | Conditions,
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

	"client|id":           ForLockers | AboutClients,
	"client|info":         ForLockers | AboutClients,
	"client|list":         AboutClients,
	"client|kill":         AboutClients,
	"client|unblock":      AboutClients,
	"client|getname":      ForLockers,
	"client|setname":      ForLockers,
	"client|setinfo":      ForLockers,
	"client|no-evict":     ForLockers,
	"client|no-touch":     ForLockers,
	"client|reply":        ForLockers,
	"client|tracking":     ForLockers,
	"client|caching":      ForLockers,
	"client|trackinginfo": ForLockers | AboutClients,
	"client|getredir":     ForLockers | AboutClients,

	"redlock":         Console | ForLockers,
	"redlock|break":   Console | ForLockers,
	"redlock|clients": Console,
	"redlock|help":    Console | ForLockers,
	"redlock|hot":     Console | ForLockers,
	"redlock|locks":   Console | ForLockers,
	"redlock|masters": Console | ForLockers,
	"redlock|rules":   Console | ForLockers,
	"redlock|slowlog": Console,
	"redlock|status":  Console | ForLockers,
	"redlock|token":   Console | ForLockers,
	"redlock|unruled": Console | ForLockers,
	"redlock|why":     Console | ForLockers,

	"cluster|info":   ForLockers,
	"cluster|nodes":  ForLockers,
	"cluster|slots":  ForLockers,
	"cluster|shards": ForLockers,
	"cluster|myid":   ForLockers,
}

// traitsOf returns the traits of the command with this full name. Every subcommand of
// CLIENT is Uncountable, known here or not, because any may change later replies.
func traitsOf(name string) Traits {
	of := commandTraits[name]
	if strings.HasPrefix(name, "client|") {
		of |= Uncountable
	}
	return of
}

// Is tells whether the command has at least one of these traits. It returns false for
// nil, an unknown command.
func (s *Spec) Is(any Traits) bool { return s != nil && s.traits&any != 0 }
