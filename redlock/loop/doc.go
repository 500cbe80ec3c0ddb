// Package loop reads and writes sockets on one goroutine, and runs tasks there. What is ready
// at the same moment is read together, handled, and then written together, so that many
// clients cost few system calls and no switch of goroutines.
//
// # A round
//
// The loop reads from the sockets that are ready, at most 16 KiB of each. It begins with those of
// ReadFirst. Those that brought much when they were read last, and the replies to such (ReadLike), come
// after those that bring little. They take turns, so that none of them starves. The loop reads only a
// few of them in a round, so that a single command does not wait for many pipelines, unless no socket
// that brings little was ready for many rounds. It reads only a few of those that end, so that nobody
// waits for a crowd that leaves. It calls the functions of Do and runs each task that was unparked. It
// calls the functions of AtEnd, which complete the batches of the round. Then it writes what each
// socket has to send. It waits for the kernel only if nothing is left to do. A call from another
// goroutine wakes it by a system call only while it waits.
//
// # What a caller may rely on
//
//   - A Receiver is called on the loop only, one call at a time. Its last call is Ended with an
//     error other than io.EOF.
//   - The bytes of one socket are written in the order of Write, whichever goroutines write.
//     Write never waits, so the caller must look at what waits and stop (Drain).
//   - A socket begins paused. Resume begins reading, so that nothing is received before its
//     owner is ready.
//   - An Unpark is never lost, also if it comes before the Park. Park may return without one.
//   - A task that rests has no stack. Its turn has returned true, and the loop calls it again
//     after the next Unpark, on the loop. Tasks share the stacks that they need for their turns.
//   - A panic or a runtime.Goexit ends one task or one socket. The log has the stack of a panic.
//
// # What a caller must do
//
//   - Whatever runs on the loop must not block and must be short: no dial, no lock that is held
//     across I/O, no channel that may be full, no sleep. A task that must wait for such a thing
//     calls Leave first, and Back when it is over. One that has much to do calls Yield now and then.
//   - A task must not Park or Leave with a mutex held. Who takes the mutex next on the loop
//     would block the goroutine that has to resume the holder.
//   - A task must not call runtime.LockOSThread. The runtime ends the process
//     if a coroutine is resumed under another lock of threads than before. So Run uses a
//     goroutine of its own, and no coroutine is made on a goroutine of a caller.
//
// A watchdog logs rounds that took more than 10 ms with what ran longest, and says if one does
// not end at all. The times include what the machine gave to others.
//
// # Owners
//
// New makes a loop and Run runs it. When its context has ended, Run unparks every task once, and
// goes on until all tasks have ended. The tasks look at their own contexts. Then it closes all
// sockets and returns. So the owners of tasks and sockets end them first, if they have last bytes
// to send. After Run, Do, Go and Adopt refuse.
//
// A Socket owns its descriptor, and only the loop uses that. A Task belongs to whoever runs it:
// the loop, or the goroutine that Leave starts, which ends with Back. Run waits for these.
// A task without a loop (OnGoroutine) runs on its caller's goroutine. Leave and Back do nothing
// there, and Park blocks. So the same code serves TLS and systems without epoll.
//
// # Locks
//
// Loop.mu guards the queues, Socket.mu the bytes that wait. Both are held for a few lines, never
// together, and never across I/O, logging or a call to others.
//
// # Memory
//
// Reading has one buffer for all sockets. A socket has a buffer for writing only while bytes
// wait. In steady use nothing here allocates.
//
// The package imports nothing of this module.
package loop
