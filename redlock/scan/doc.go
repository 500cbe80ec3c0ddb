// Package scan walks over all keys that masters hold, by SCAN, on one voting master at a
// time.
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
package scan
