// Package conn reads from and writes to connections for sessions. A Socket is a connection that
// a loop (redlock/loop) reads and writes, whatever its kind. An Input holds bytes that were read
// and not yet used. A Writer is the lock on the writing side of a client. A BusyTimer looks after the
// client of a busy session. A Budget bounds the memory of all of them together. The package knows
// bytes and no commands.
//
// # With a loop
//
// The loop gives the bytes that it reads to a Reader: an Input, or the feeder of an upstream
// connection. Bytes that are written are queued, and no write waits. Whoever writes waits afterwards
// while more than 64 KiB are queued: a task parks (Writer.AwaitRoom), and others are called (WhenRoom). Only
// Send waits, for it queues no copy. An Input has a buffer only while it has bytes, and its Fill returns
// ErrNothing instead of waiting.
//
// # Who may do what
//
// Any goroutine may use a Socket. Only its task calls Send and AwaitSent.
//
// A Writer is shared by all who write to one client. What the upstream sends comes in parts (Pass). Whole
// values of others (Append) follow the part that ends a value, so no reply ever stands inside another.
//
// An Input belongs to one goroutine at a time. The loop reads ahead while its session is busy.
// Those bytes come out of the next Fill.
//
// A Budget and a Clock may be used by all goroutines at once.
//
// In steady use nothing here allocates or reads the system's clock, and nothing starts a
// goroutine but the timer of a BusyTimer, when its session is busy for longer than a moment.
package conn
