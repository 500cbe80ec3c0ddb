// Package conn reads from and writes to connections for sessions. A Socket has reads that can
// be interrupted. An Input holds bytes that were read and not yet used. A Writer is the lock
// on the writing side of a client. A Minder looks after the client of a busy session. A Budget
// bounds the memory of all of them together. The package knows bytes and no commands.
//
// # With a loop
//
// A loop (redlock/loop) may read and write a socket (Attach). It gives the bytes that it reads to
// a Reader: an Input, or the feeder of an upstream connection. Bytes that are written on the loop
// are queued, and nothing there waits for them. Other goroutines wait while more than 64 KiB are
// queued, and so does the socket's task (AwaitRoom). An attached Input has a buffer only while it
// has bytes, and its Fill returns ErrNothing instead of waiting.
//
// # Who may do what
//
// One goroutine at a time reads from a Socket and one at a time writes to it. Any goroutine
// may call Wake, Abandon, CloseWrite, ReadUntil and the questions of the sweep: Silent,
// Stalled and HasLargeBuffer.
//
// A Writer is shared by all goroutines that write to one client. The holder of its lock may
// write, and unlocks it only between two whole values. So no reply ever stands inside another.
//
// An Input belongs to one goroutine at a time. A Minder reads ahead while its session is busy.
// Those bytes come out of the next Fill.
//
// A Budget and a Clock may be used by all goroutines at once. Only a Writer's lock is held
// across I/O, which is its purpose.
//
// In steady use nothing here allocates or reads the system's clock, and only a Minder starts a
// goroutine, when its session is busy for longer than a moment.
package conn
