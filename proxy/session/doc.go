// Package session is the engine of one client's connection. It reads commands within the limits, passes
// on those that its handler forwards to the upstream, and sends replies in the order of the commands. It
// knows no command, and calls no handler. The handler (package handler) runs the session's task:
//
//	for s.Begin(task) {
//		for cmd, ok := s.Next(); ok; cmd, ok = s.Next() {
//			... // answer it, or forward it to be answered
//		}
//		if more, rests := s.ReadMore(); !more { ... } // the task returns until more comes, or it is over
//	}
//	s.Finish()
//	s.Release()
//
// # The way of a command and of its reply
//
//	           the loop reads    a turn of the session's task      the end of the round
//	client ===> loop.Socket --> input --> Next --> handler --> Forward, Send ==> loop.Socket ===> upstream
//	                                                  |
//	                                      replies of the proxy itself
//	                                                  v
//	client <=== loop.Socket <-- upstream.Writer <-- Flush
//	                                  ^
//	                                  '------ upstream (feed) <-- loop.Socket <=== upstream
//
// All sockets are of one kind, and each has one buffer of what is to be sent. A session keeps its own replies until the
// input is used up, and its member the commands that it forwards, so that a pipeline is one write in each direction.
//
// # What a handler may rely on
//
//   - A command's bytes are valid until the next call of Next.
//   - Reply and its variants answer after everything before is answered: Settle waits until
//     no reply of the upstream is pending. Only ReplyAtOnce does not wait, for a pipe.
//   - Forward gathers the client's commands, so that a pipeline is one write, and Insert adds
//     the proxy's own commands. Settled returns the replies to the session itself.
//   - Share forwards a command over a connection that other sessions use, too. Open gives the session
//     its own, and first waits for everything before, so the order of commands is kept.
//   - Overlap has the masters asked about a key without waiting for earlier commands on other keys
//     (overlap.go). Their replies come in order. Everything else waits for them first.
//   - Anything that takes time runs inside Busy. Meanwhile the busy timer sends replies that are
//     ready, and notices when the client leaves, which ends Context.
//   - The task may run on the loop of all clients. Before anything that takes long or waits for
//     another goroutine, it calls LeaveLoop. Settle, Ask and Busy need no such call.
//
// # Input
//
// The loop gives what it reads from the client to an input (input.go). While the session waits, that goes into a
// buffer, which the input has only while it has bytes. While the session is busy, the loop reads a little ahead, and
// far ahead once the busy timer has looked: the client's end may come behind much else. Memory grows with the bytes
// that came, and a Budget bounds that of all sessions together.
//
// # How a session ends
//
// End takes a Reason (end.go). The reason decides the last reply, the limit that was reached,
// the counter and the log line. Some reasons wait for the commands that have been read, some
// stop at once, and some close the connections as they are. Each is reported once.
//
// # On the loop
//
// A session is sequential code in a task of the loop (redlock/loop). The loop reads the client,
// appends the replies, and writes them at the end of a round. The session parks while it waits for
// the upstream's replies, for votes, or for a client that does not read. When it waits for input, its task
// returns, so that an idle session has no stack, and the loop calls it again. It also ends there. A session
// leaves the loop before anything that may block, such as a TLS handshake. A goroutine of its own
// then runs it until ReadMore, which brings it back.
//
// # Goroutines
//
// A session that waits on the loop has none, but one or two that pump its bytes if the kernel cannot poll its connection.
// Others use it, too:
//
//   - The goroutine of its task, if that left the loop. The server waits for its end. The task owns
//     every field whose comment says nothing.
//   - The busy timer (busytimer.go), only while the session waits for more than a moment. It
//     then owns the pending replies. Busy waits for it.
//   - The loop, for the client's bytes (input.Received), and for the upstream's replies (package upstream). These
//     call owner, which uses only End and Names.Confirm.
//   - Goroutines that bring the masters' messages (package pubsub), if the handler started a listener, which
//     waits for them.
//
// Any goroutine may call Inspect, Context, Upstream, Silent, the addresses, and End with
// a reason that allows it.
//
// # Locks
//
// The write lock of the client (upstream.Writer) is held for a few lines. Names.Confirm and
// FlushWith's function are called with it held. The names, the input and the busy timer have a mutex each, which is
// held for a few lines. The busy timer's is locked before the write lock and before the input's.
package session
