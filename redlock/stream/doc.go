// Package stream is one ordered connection to one database of a lock master, and
// what that master is still owed.
//
// A Stream writes what is queued in one piece, reads the answers in order, and goes on
// after the connection broke. Its Owner dials nothing and counts nothing: it says where
// the server is, judges a check, and hears of what happens.
//
// A caller may rely on this:
//
//   - Order. Calls are executed in the order of Send. One that follows another, such as
//     an undo its acquire, cannot overtake it, also across a reconnect: the next
//     connection first kills the one before by its CLIENT ID, then sends debts, and
//     then what was queued meanwhile (connect.go).
//   - Each Asker hears of its call exactly once: the replies and what the check behind
//     its batch said, or an error. With ErrUnsent nothing was executed.
//   - Checks. Every batch ends with the marker, TIME, and ROLE or INFO (check.go). No
//     answer is handed on before they are read.
//   - Debts. What could not be delivered is kept, as far as there is room, and goes
//     out before anything that may create a lock (queue.go).
//   - Gates. What follows a gate is sent only after its asker has decided (gate.go).
//   - A server that refuses what locks need is asked for none until a probe succeeds
//     (probe.go), and one that does not answer is asked for none until it does.
//   - Bounds. The calls and bytes that wait are limited, and so are debts.
//
// Connect opens any connection to a master: it dials, authenticates, and asks who the
// server is, or for RESP3 where the connection is for what the server tells by itself.
// A Backoff paces the dialling. Contain turns a panic into the end of one connection,
// for other clients hold locks through this process.
//
// A stream's goroutines are Run's, and a writer that Run starts and waits for. Its mutex
// is held for few lines, never while the Owner or an Asker is called, but for the
// Owner's Name, Timeout, MaxReply and Suspended, and an Asker's Owed. A Lifetime's mutex
// may be taken with it held.
//
// The package knows no votes, no markers and no configuration. It uses redlock/resp.
package stream
