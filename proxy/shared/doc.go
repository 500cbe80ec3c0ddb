// Package shared sends the commands of many sessions over a few connections to the ordinary
// Redis. A session uses it for commands that neither change nor use a connection
// (command.Shareable). It knows no command and no session.
//
// # From command to reply
//
// A Pool has the connections. A session has a Member of it, which is an upstream.Sender: the
// session's batch calls Expect and Write. Write puts the commands into the connection's buffer
// and a turn into its queue, both at once: a turn is a number of replies for one member.
//
// The loop sends everything in the buffer in one write at the end of its round, and feeds what it reads
// (drive.go), before it reads clients. Feeding (reader.go) takes one turn after another and gives
// its replies to its client. So a member's replies come in the order of its commands, whole, and no
// other client gets a part of them. Forwarding allocates nothing.
//
// The replies are appended to the client's socket. While the client takes no more or somebody else
// writes to it, they are put aside, and a goroutine writes them (aside.go). Feeding never waits for a
// client.
//
// # What breaks for whom
//
// If a connection ends, or sends a reply that answers no command, the members with replies
// pending have failed: nobody knows which of their commands were executed. Their sessions end,
// as with a connection of their own. Other members get a new connection at their next command.
//
// # Which server
//
// A connection stays with the server that it reached. If that server replies READONLY, it has
// become a replica: members of all connections that lead there get a new one at their next command,
// and the old one is closed when no reply is pending. So is one that nobody has used for a minute.
//
// # Slow clients
//
// For each client at most 64 KiB are in its socket's buffer, and a little more than twice as
// much is put aside, which counts in limits.memory. If there is more, or no memory, nothing is
// read from the connection, and others wait. The watch looks ten times a second. It adds up the
// time for which clients have stopped the reading while another member waited. Time in which the
// client takes ten megabytes a second does not count, and a tenth of all other time is taken off. If
// the sum reaches a second, the watch calls Owner.Unread for all clients that are full then, and the
// owner ends them. Until the sum falls, a client is ended as soon as it is full. So clients that do
// not read, however many, delay others by about a second, and then for a tenth of the time at most.
// A client for which others have waited once uses a connection of its own from then on
// (Member.IsSlow): others should wait for it no second time.
//
// The owner bounds a turn: it must not have more than a small number of commands and bytes
// unanswered. Write waits while the connection's buffer has more than a megabyte.
//
// Scripts, SORT and the like, and blocking commands would delay the commands behind them on
// their connection. So they are not shareable: the session opens a connection of its own.
//
// # Goroutines and locks
//
// The pool has a watch.
// Pool.Close ends all and waits for them. A member has a goroutine while something is put aside,
// and Member.Close waits for that.
//
// Lock order: a Pool's mutex, then a connection's. The connection's also guards what is put aside
// for its members. The client's conn.Writer is locked with neither held. Nothing is called with a
// mutex held, and no I/O is done. The owner's methods may be called on the loop, and shortly after
// Member.Close.
package shared
