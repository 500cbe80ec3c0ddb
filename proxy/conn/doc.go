// Package conn is how a session reads from and writes to a connection: sockets whose
// reads can be interrupted, the bytes that were read and not yet used, the lock on
// a client's writing side, and the memory that all of it may take together. It
// knows bytes and no commands.
//
// # Who may do what
//
// One goroutine at a time reads from a Socket and one at a time writes to it. Wake,
// Abandon, CloseWrite, ReadUntil and the questions a sweep asks (Silent, Stalled,
// HasLargeBuffer) may come from any goroutine.
//
// A Writer is shared by all who write to one client. Whoever holds its lock may
// write, and unlocks it only between two whole values, so that no reply ever stands
// inside another.
//
// An Input belongs to one goroutine at a time. Its owner may hand it over: what is
// read ahead (KeepAhead) while the owner is busy comes out of the next Fill.
//
// A Budget and a Clock may be used by all goroutines at once. No lock of this
// package is held across I/O, apart from a Writer's, which is there for that.
//
// Nothing here allocates while a connection is in steady use, starts a goroutine or
// reads the system's clock. The package imports none of this module.
package conn
