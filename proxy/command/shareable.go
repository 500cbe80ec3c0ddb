package command

// ownConnection are the traits of commands that a client must send over a connection of its own.
// A script may run for long, and the server answers BUSY to others meanwhile. SORT and MIGRATE take
// long, too. The others change the connection, or have none or several replies.
const ownConnection = Sort | Migrate | Script | Subscription | BeforeAuth | NeverOnLocks |
	LeavesProtocol | Uncountable | Console | AboutClients

// largeWork are commands on keys that often take long or answer much: they put whole collections
// together, or pass on a whole value in another form.
var largeWork = map[string]bool{
	"sinter": true, "sinterstore": true, "sintercard": true, "sunioncard": true, "sdiffcard": true,
	"sunion": true, "sunionstore": true, "sdiff": true, "sdiffstore": true,
	"zinter": true, "zinterstore": true, "zintercard": true,
	"zunion": true, "zunionstore": true, "zdiff": true, "zdiffstore": true,
	"georadius": true, "georadiusbymember": true, "geosearchstore": true,
	"bitop": true, "lcs": true, "pfmerge": true, "sort_ro": true,
	"dump": true, "restore": true, "restore-asking": true, "memory|usage": true,
	"argrep": true, "arop": true, // they may look at a whole array
	"pfdebug": true, "vadd": true, "vsim": true, // threads of the server may answer these two
}

// shareable tells whether a command may go over a connection that other clients use, too. It
// must have keys, one reply, no effect on its connection, and not wait for other clients. So it
// reads or writes its keys and does nothing else. A command that only a server has told of is
// never asked: it is not shareable.
func (s *Spec) shareable() bool {
	return len(s.keys) > 0 && (s.Readonly() || s.Write()) && !s.Blocking() && !s.NoMulti() &&
		!s.Is(ownConnection) && !largeWork[s.Name]
}
