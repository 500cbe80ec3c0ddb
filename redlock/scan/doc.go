// Package scan walks over all keys that masters hold, by SCAN, on one voting master at a
// time. It also shows people what the masters hold under them: that changes nothing, and nothing decides by it.
//
// # Keys
//
// A lock is on a quorum of masters, so it is on one of any N-Q+1. Walk scans as many. A
// master that fails, restarts or does not vote is replaced by the next one. Each command goes through
// the stream of its database, and the check behind it must say that the master votes.
//
// SCAN gets no pattern. One that a client made up may keep a master busy for long, and no
// pattern covers the companions of locks.
//
// Walk starts no goroutine, and calls its visitor with no lock held. The visitor sets the
// pace.
//
// # What is under them
//
// A Reader's Look reads what each master holds under some keys, by one ballot (look.go). Hold says what that
// comes to (hold.go). Its Walk lists keys slowly, so that no lock command is held up: it asks for some keys,
// looks at sixteen at a time, waits for a moment, and asks again (show.go).
//
// Look first asks how large the values are (MEMORY USAGE), and reads none that is too large:
// of it only the type and the TTL are known, and Copy.Large says so.
//
// The value of a lock is a secret. Copy.Digest identifies it, and Copy.Text is for the
// comparison with what a caller remembers.
//
// Any goroutine may use a Reader. It starts no goroutine and has no lock.
package scan
