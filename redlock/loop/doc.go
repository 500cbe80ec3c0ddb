// Package loop reads and writes sockets on one goroutine, and runs tasks there. It reads all
// sockets that are ready, lets their owners handle the bytes, and then writes all answers. So
// many clients cost few system calls and no switch of goroutines.
//
// Below each socket is a source (source.go). The kernel polls it if it can: TCP and Unix sockets where
// there is epoll, also below TLS (tls.go). Otherwise two goroutines pump its bytes (pump.go): those of a pipe,
// and of all connections on other systems. What is above a socket cannot tell which.
//
// A third kind stays in memory, for tests: a World (world.go, package sim) runs loops and all that waits around them in
// one thread and in virtual time, in an order that a seed decides. So whatever starts a goroutine, waits,
// or draws a random number beside a loop does it by the loop's Spawn, Wait, After and Draw (wait.go).
//
// # A round
//
// A round first runs tasks of GoLater that were unparked, few of them if a socket that brings little is ready.
// It reads once from each socket that is ready, at most 32 KiB. Then it calls the functions of
// Do, runs each other task that was unparked, and calls the functions of AtEnd, which complete the batches
// of the round. At last it writes the bytes that each socket has to send. The loop waits for the
// kernel only if nothing is left to do. Only then does waking it cost another goroutine a system call.
//
// Sockets are read in this order, and each kind in turns, so that none starves: those with ReadFirst;
// those whose last read brought little; those whose last read brought much, and those with the replies
// to such (ReadLike); those that end. A round reads few of the last two kinds, so that a command waits
// neither for many pipelines nor for a crowd that leaves. It reads more of the third if none of the
// second was ready for many rounds.
//
// # What a caller may rely on
//
//   - A Receiver is called on the loop only, one call at a time. Its last call is Ended with an
//     error other than io.EOF.
//   - The bytes of one socket are written in the order of Write, whichever goroutines write.
//     Write never waits, so the caller must look at what waits and stop (WhenDrained, AwaitDrained).
//   - A socket begins paused. Resume begins reading, so that nothing is received before its
//     owner is ready.
//   - An Unpark is never lost, also if it comes before the Park. Park may return without one.
//   - A task rests after its turn has returned true. It then has no stack. After the next Unpark
//     the loop calls the turn again. Tasks share the stacks for their turns.
//   - A panic or a runtime.Goexit ends one task or one socket. The log has the stack of a panic.
//
// # What a caller must do
//
//   - Whatever runs on the loop must not block and must be short: no dial, no lock that is held
//     across I/O, no channel that may be full, no sleep. A task that must wait for such a thing
//     calls Leave first, and Back when it is over. One that has much to do calls Yield now and then.
//   - A task must not Park or Leave with a mutex held. The next task that locks the mutex
//     would block the loop, which then could not resume the holder.
//   - A task must not call runtime.LockOSThread. The runtime ends the process if a coroutine
//     was made on a goroutine with a locked thread and is resumed on one without, or the other
//     way round. So Run uses a goroutine of its own, and makes all coroutines there.
//
// Each socket notes when it last got on (progress.go), so that its owner can tell a peer that is silent from one
// that does not read, and needs no timer for that.
//
// A watchdog logs rounds that took more than 10 ms, with the part that ran longest, and rounds
// that do not end. The times include those in which other programs had the processor.
//
// # Owners
//
// New makes a loop and Run runs it. When its context has ended, Run unparks every task once, and
// goes on until all tasks have ended. The tasks look at their own contexts. Then it closes all
// sockets and returns. So the owners of tasks and sockets end them first, if they have last bytes
// to send. Run waits for those that were closed and still send. After Run, Do, Go and Adopt refuse.
//
// A Socket owns its source, and only the loop uses that. A pump has a goroutine that reads, with at most
// 32 KiB that the loop has not taken, and one while something is written. They end with the connection.
// A Task belongs to whoever runs it: the loop, or the goroutine that Leave starts, which ends with Back.
// Run waits for all of these.
//
// # Locks
//
// Loop.mu guards the queues, Socket.mu the bytes that wait. Both are held for a few lines, never
// together, and never across I/O, logging or a call to others.
//
// # Memory
//
// Reading has one buffer for all sockets. A socket has a buffer for writing only while bytes
// wait. In steady use nothing here allocates. The package imports nothing of this module.
package loop
