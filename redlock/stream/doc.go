// Package stream keeps one ordered connection to one database of a lock master. It also
// keeps the debts of that master: the undos, releases and expiries that it has not
// received.
//
// A Stream writes its queue in one piece and reads the answers in order. It goes on after
// its connection broke. The Owner of a stream neither dials nor counts votes. It says
// where the server is, judges each check, and is called when a connection begins or ends.
//
// A caller may rely on this:
//
//   - Order. The master executes calls in the order of Send. A later call never
//     overtakes an earlier one, also across a reconnect. So an undo cannot overtake
//     its acquire. The next connection first kills its predecessor by CLIENT ID,
//     then sends the debts, and then the calls that were queued meanwhile
//     (connect.go).
//   - Each call is answered exactly once. Its Asker gets the replies with the
//     judgement of the check, or an error. ErrUnsent means that nothing was
//     executed.
//   - Checks. Every batch ends with the marker, TIME, and ROLE or INFO (check.go).
//     The stream hands on no answer before it has read them.
//   - Debts. The stream keeps what it could not deliver, as far as there is room. It
//     sends debts before any call that may create a lock (queue.go). It sends at most
//     1,024 of them together, because whoever asks the master meanwhile has to wait.
//   - Gates. The stream sends a call behind a gate only after the gate's asker has
//     decided (gate.go).
//   - Refusals. The stream tries now and then what locks need, and tells the Owner of
//     a refusal (probe.go). If the server's user lacks a right, it asks it for no lock
//     until a probe succeeds. If a server does not answer, the stream asks it for no
//     lock until it does.
//   - Beats. The Owner calls Beat several times a second. That is when the stream gives up
//     a connection on which nothing is answered, probes, and repeats what was refused.
//   - Bounds. The number and the bytes of waiting calls are limited. So are those of
//     debts. A reply that is longer than Owner.MaxReply is dropped as it comes. Its asker
//     gets ErrTooLong as soon as that is certain, before the end of the batch, because such
//     an answer is no vote. Other calls get theirs.
//
// Connect opens any connection to a master: it dials, authenticates, and asks who the
// server is. With Handshake.Pushes it asks for RESP3 instead, for a connection that
// receives pushes. A Backoff paces the dialling. Contain turns a panic into the end of
// one connection, because other clients hold locks through this process.
//
// Run is the goroutine of a stream. It dials, and owns the connection and its link. The link
// gives the connection to the event loop of Options.Loop (link.go), and Run waits for its end. On
// the loop nothing may wait. So Judge, Answered and all that they call must not. Server, Up and
// Down may, because Run calls them. A batch of more than 64 KiB, or of more than 512 calls, is
// answered on a goroutine, and nothing is read meanwhile.
//
// The mutex of a stream is held for few lines. It is held while these methods are called:
// the Owner's Name, Timeout, MaxReply and Suspended. It is held during no other call of the
// Owner, and during none of an Asker. A Lifetime's mutex and the loop's may be
// taken with it held.
//
// The package knows no votes, no markers and no configuration.
package stream
