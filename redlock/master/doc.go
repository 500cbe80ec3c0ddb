// Package master is the N lock masters as one process knows them: how to reach each
// master, its connections, its state, and which masters may vote.
//
// A Set is all masters. It owns the roster, which decides, and it carries out the
// roster's plans. It writes markers, has idle masters checked, and asks each master now
// and then for its eviction policy. Each Master has a stream for every database in use
// and a watch on its clock (clock.go). File absence.go words why a master is unreachable.
//
// A caller may rely on this:
//
//   - A batch of a stream is judged before its askers receive the answers
//     (judge.go). The judgement uses the marker, the clock and the replication of
//     the master. It mostly finds what the check before found, and then takes no
//     lock of the roster. Only changes go to the roster.
//   - The Observer and the log are called with no lock held, one call after the
//     other, in the order of the events. They may ask for the state of the masters.
//   - The Set overwrites a marker only if it is still as the roster saw it. It also
//     does so only within a ballot's patience (Limits.LateMark), because what the
//     roster saw may change and change back.
//   - Time during which this machine was suspended counts as time, if its kernel
//     reports it (slumber.go).
//   - Another server can replace a master while requests go on (replace.go).
//
// The Set has one goroutine, and each stream has its own. All end with the context. A
// stream's lock may be taken while a Master's lock is held. Every other lock is taken
// alone: the roster's (voters.go), a clock's, and that of a last reading.
//
// The package asks nothing on behalf of a client and counts no votes.
package master
