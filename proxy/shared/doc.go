// Package shared sends the commands of many sessions over a few connections to the ordinary
// Redis. A session uses it for commands that neither change nor use a connection
// (command.Shareable). It knows no command and no session.
//
// # From command to reply
//
// A Pool has the connections. A session has a Member of it, which is an upstream.Sender: the
// session's batch calls Expect and Write. Write puts the commands into the connection's buffer
// and a turn into its queue, both at once: a turn is a number of replies for one member. The
// writer sends everything in the buffer in one write. The reader (reader.go) takes one turn after
// another and writes its replies to its client. So a member's replies come in the order of its
// commands, whole, and no other client gets a part of them. Forwarding allocates nothing.
//
// # What breaks for whom
//
// If a connection ends, or sends what answers no command, the members with replies pending have
// failed: nobody knows which of their commands were executed. Their sessions end, as with a
// connection of their own. Other members get a new connection at their next command.
//
// # Which server
//
// A connection stays with the server that it reached. If that server replies READONLY, it has
// become a replica: members get a new connection at their next command, and the old one is closed
// when it owes nothing. So is one that nobody has used for a minute.
//
// # Slow clients
//
// The reader waits while a client's socket is full. Others wait behind it. The watch looks ten
// times a second: if one turn has had the reader wait in writes for a second in all, and another
// member waits behind it, the owner is told (Owner.Unread) and ends that client. Time in which
// the client takes ten megabytes a second does not count. So one that does not read delays
// others by about a second at most, and nothing is kept in memory for it but what the kernel
// keeps. A client with a slow line that reads values of many megabytes, or that sends much
// before it reads, needs upstream_connections: own.
//
// The owner bounds a turn: it must not have more than a small number of commands and bytes
// unanswered. Write waits while the connection's buffer has more than a megabyte.
//
// Scripts, SORT and the like, and blocking commands would delay the commands behind them on
// their connection. So they are not shareable: the session opens a connection of its own.
//
// # Goroutines and locks
//
// A connection has a reader and a writer. The pool has a watch. Close ends all and waits for them.
//
// Lock order: a Pool's mutex, then a connection's. The reader locks the client's conn.Writer
// without holding either. Nothing is called with a mutex held, and no I/O is done. The owner's
// methods may be called shortly after Member.Close.
//
// The package imports upstream, conn and wire.
package shared
