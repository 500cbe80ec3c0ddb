// Package upstream connects sessions to the ordinary Redis. It logs in, matches each reply to the
// command that it answers, and passes replies on to the clients. It knows no commands but those of
// the login (login.go), no session and no settings.
//
// # One connection
//
// A Conn has a queue of turns: the replies that are still to come, each for a Member, which is one
// session's part. A member has the connection for itself (Member.Open), or shares one of the Pool's
// with others (Member.Join). That is the only difference: a queue with one member or with several.
//
//	session  Member a --commands--.                               .--> Writer of a's client
//	                               \                             /
//	session  Member b --commands----> [ b b a b a a ]  queue   --'---> Writer of b's client
//	                       |             ^                     ^
//	                       |     Send    |         feed        |
//	                       v  at the end |      the first      |
//	                   loop.Socket ======+=== the upstream ====' replies, in the same order
//
// Clients and servers have the same kind of socket (loop.Socket). A Writer is the lock on the writing side of a
// client's, where a value that comes in parts must not be interrupted.
//
// A member gathers the commands of one input (Forward), with what will answer them. Send puts the commands
// into the socket's buffer and the turns into the queue, both under the connection's mutex, so they have one order. A
// long command on the member's own connection follows its turn: nobody else writes there. The loop sends
// all that members have written in one write at the end of its round. It feeds what it reads
// (feed.go): the first bytes of each top-level value tell to which turn it belongs. A value of any
// length is passed on as it comes. Only those for the owner are kept. Member.Wait returns when no
// reply of the member is pending. By then its client has every one, and Wait returns the owner's.
//
// A caller may rely on this:
//
//   - Each value goes to the member and the destination of the turn to which it belongs. A value that
//     nobody asked for, or bytes that are no RESP, go nowhere: the connection ends. An error replaces a
//     broken value of which its client has no part yet.
//   - A client gets only whole values, one after another. Only the last may be cut off, if the upstream
//     cut it off.
//   - If a command was never answered, Wait returns false.
//   - A forwarded reply allocates nothing. At most Options.Captures bytes of replies are kept for
//     the owner, and long ones are charged to the Pool's memory.
//
// # For itself, or shared
//
// What depends on state of the connection needs one of its own. So only there may a member expect
// Confirmations, Stream, Switch and replies to the owner, and only its client gets pushes.
//
//   - When a member's own connection ends, the member has failed. When a shared one ends, those with
//     replies pending have failed, for nobody knows which of their commands were executed. The others
//     join another one at their next command.
//   - A member's own connection is read in the turn of its client, a shared one before all clients.
//   - A client that sends no more ends its own connection as it would itself (Finish), and on a shared one it
//     waits for its replies. It gets what comes until the server has been silent for drainSilence (Look).
//   - If a server replies READONLY on a shared connection, it has become a replica: members of all
//     connections that lead there join another one at their next command, and the old one is closed when
//     no reply is pending. So is one that nobody has used for a minute.
//
// # Slow clients
//
// Replies are appended to the client's socket, and nothing waits for that. If more than 64 KiB wait for
// a client, nothing is read from its connection until the client has taken them. So no more than that
// and one read are buffered for a client, whether it shares or not (slow.go).
//
// On a shared connection others wait meanwhile. The watch looks ten times a second. It adds up the time
// for which clients have stopped the reading while another member waited. Time in which the client
// takes ten megabytes a second does not count, and a tenth of all other time is taken off. If the sum
// reaches a second, Owner.Unread is called for all clients that are full then, and the owners end them.
// Until the sum falls, a client is ended as soon as it is full. So clients that do not read, however
// many, delay others by about a second, and then for a tenth of the time at most. A client for which
// reading has stopped once uses a connection of its own from then on (Member.IsSlow): others should wait
// for it no second time. For the same reason the owner bounds what a member has unanswered.
//
// # Logging in
//
// A ClientState is what the client has set for its connection. It makes the Login of each new
// connection. A Login is a value: the proxy's own credentials or the client's Claim, and all that must be said again on
// a new connection (steps). It is sent at once, before any other command, with a deadline. A Failure has the reply for the
// client.
//
// # Who may do what
//
// Feeding, the watch's looks and all calls of an Owner are on the loop. A member's methods are called by
// its task, on the loop or away from it, unless they say otherwise. A task that waits parks.
//
// The connection's mutex guards its queue. What a reader of another goroutine may ask is atomic or under
// that mutex, and only the loop changes it. A member's captured replies belong to the loop while replies
// are pending, and to the task when none is.
//
// Lock order: a Pool's mutex, then a connection's. The client's Writer is locked with neither held,
// and Owner.Confirmed is called with it. Nothing else is called with a mutex held, and no I/O is done. The
// owner's methods may be called shortly after Member.Close.
package upstream
