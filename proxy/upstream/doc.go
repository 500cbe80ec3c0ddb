// Package upstream is one client's own connection to the ordinary Redis. It logs in,
// matches each reply to its command, and copies replies to the client. It knows no
// commands but those of the login (login.go), no session and no settings.
//
// # From command to reply
//
// The owner calls Conn.Expect before it writes commands (Conn.Write), to say how they
// will be answered. An Expectation names the number of values, their meaning and their
// destination: the client, nobody, or the owner. The client's loop reads the
// connection (attached.go) and calls Feed with what came (feed.go). The first bytes of
// each top-level value tell the pending replies (pending.go) which command it answers. Values of
// any length are passed on as they come, and only those for the owner are kept. Conn.Wait returns when
// nothing is pending any more. By then the client has every reply, and Wait returns the owner's.
//
// A Batch (batch.go) gathers commands of a pipeline before they are written, and their
// expectations.
//
// A caller may rely on this:
//
//   - Each value goes to the destination of the expectation that it answers. A value
//     that nobody asked for, or bytes that are no RESP, go nowhere: the connection ends
//     with Events.OutOfSync. Pushes and messages go to the client.
//   - Only whole values are written to the client, one after another. Only the
//     last may be cut off, if the upstream cut it off.
//   - If a command was never answered, Wait returns false.
//   - A forwarded reply allocates nothing. At most Options.Captures bytes of replies are kept for
//     the owner, and long ones are charged to Options.Memory.
//
// # Logging in
//
// A ClientState is what the client has set for its connection. It makes the Login of each new
// connection. A Login is a value: the proxy's own credentials or the client's Claim, and the state
// that the client was promised before there was a connection. Open sends it before any
// other command, with a deadline. A Failure has the reply for the client.
//
// # Who owns what
//
// The client's loop reads the connection. It reads nothing while the client does not read, or another
// goroutine writes to the client. It holds the lock of the client's conn.Writer until a value for the
// client has ended. The mutex of the pending replies hands captured replies over to the owner. The owner
// may read everything else once the connection has ended.
//
// Lock order: the client's conn.Writer, then the mutex of the pending replies. That mutex is held
// for a few lines, and never across I/O or a callback. Events.Confirmed is called with the
// conn.Writer locked. It may be locked in every other event but Ended, so no event may write
// to the client.
package upstream
