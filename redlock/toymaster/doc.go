// Package toymaster is a Redis server in memory, for tests: it lives in a sim.World, in one thread and
// in virtual time.
//
//	m := toymaster.New("m1")
//	m.Put("lock", "a token", time.Second)
//	l := toymaster.NewLink("a client", m, seed, world)
//	conn, err := l.Dial(ctx) // a net.Conn that the World's loops can use
//	l.Mute()
//	m.Restart(false)
//
// A Master knows as many commands as locks need, and runs scripts in Lua. It has a clock of its
// own, which may be wrong. It can stop (Pause), end (Kill), begin again with its keys or without them
// (Restart), lose its keys (Flush), and refuse to serve (Refuse). A Link is the network between one
// client and one Master. It can be slow, break at a chosen question or answer, and swallow all bytes
// (Mute). Watch sees each command that a Master executes.
//
// Tests of package redlock (TestToyMaster...) compare it with a real Redis, command by command.
package toymaster
