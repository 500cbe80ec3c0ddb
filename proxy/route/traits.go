package route

import (
	"strings"

	"redlock-proxy/proxy/wire"
)

// Traits are a set of reasons to treat a command differently from others. A reply to
// COMMAND does not contain them. They are in commands.txt.
type Traits uint32

const (
	Sort            Traits = 1 << iota // code in keys.go finds its keys
	Migrate                            // code in keys.go finds its keys
	Conditions                         // code in keys.go finds its keys
	Script                             // arguments behind the keys may name keys, too
	Splits                             // can be answered in two halves
	Elsewhere                          // may write a key in another database
	Subscription                       // gets confirmations instead of a reply
	InSubscribeMode                    // allowed in RESP2's subscribe mode
	BeforeAuth                         // needs no login
	// ForLockers have no keys, and users who may only use locks may send them, because lock libraries do. None
	// changes the upstream or reveals its keys, or shows other clients.
	ForLockers
	// OnMasters have no keys, and are allowed in a transaction on lock keys: the masters run them. So they only
	// answer. Nothing that a client sends may flush the masters or change how they work.
	OnMasters
	// NeverOnLocks are refused on lock keys. Only the upstream has the text of a function, and MIGRATE would take a
	// lock away from its masters. HIMPORT SET uses what an earlier command left on its connection. The proxy waits
	// itself for lists, and does not know how BLMOVEM does.
	NeverOnLocks
	LeavesProtocol // the connection then no longer carries commands and replies
	Uncountable    // adds none or several elements to EXEC's reply, or changes later replies
	Console        // the proxy's own REDLOCK, for users who may use locks
	AboutClients   // about the sessions of the proxy, which the upstream does not know
	Shareable      // may go over a connection that other clients use, too; it follows from the rest of the row
	Locking        // takes a lock or gives it back, in some library; or writes like SET, but no lock
	// LargeWork often takes long or answers much: it puts whole collections together, passes on a whole value in
	// another form, or may look at a whole array. Threads of the server may answer PFDEBUG, VADD and VSIM.
	LargeWork
)

// specialKeys are the traits of commands whose plane does not follow from their key
// specifications alone. REDLOCK never goes to the upstream, whatever its key.
const specialKeys = Sort | Migrate | Conditions | Script | Splits | Elsewhere | Console

// traitNames are the names of traits in commands.txt, in their order.
var traitNames = strings.Fields(`sort migrate conditions script split elsewhere subscription in_subscribe_mode before_auth
	for_lockers on_masters never_on_locks leaves_protocol uncountable console about_clients shareable locking large_work`)

// ownConnection are the traits of commands that a client must send over a connection of its own. The server answers
// BUSY to others while a script runs. SORT, MIGRATE and LargeWork take long, too. The others change the connection,
// or have none or several replies.
const ownConnection = Sort | Migrate | Script | Subscription | BeforeAuth | NeverOnLocks |
	LeavesProtocol | Uncountable | Console | AboutClients | LargeWork

// shareable tells whether a command may go over a connection that other clients use, too. It
// must have keys, one reply, no effect on its connection, and not wait for other clients. So it
// reads or writes its keys and does nothing else. A command that only a server has told of is
// never asked: it is not shareable.
func (s *Spec) shareable() bool {
	return len(s.keys) > 0 && (s.Readonly() || s.Write()) && !s.Blocking() && !s.NoMulti() && !s.Is(ownConnection)
}

// traitsOf returns the traits that follow from a name. Every subcommand of CLIENT is Uncountable,
// known here or not, because any may change later replies.
func traitsOf(name string) Traits {
	if strings.HasPrefix(name, "client|") {
		return Uncountable
	}
	return 0
}

// Is tells whether the command has at least one of these traits. It returns false for
// nil, an unknown command.
func (s *Spec) Is(any Traits) bool { return s != nil && s.traits&any != 0 }

// AsksForMaintenance recognises CLIENT MAINT_NOTIFICATIONS. The proxy never forwards it. An
// upstream that knows it could later tell the client to connect elsewhere, past the proxy.
// Then the client's locks would be on a single server again.
func AsksForMaintenance(args [][]byte) bool {
	return len(args) > 1 && wire.IsWord(args[0], "CLIENT") && wire.IsWord(args[1], "MAINT_NOTIFICATIONS")
}
