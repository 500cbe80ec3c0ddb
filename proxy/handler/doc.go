// Package handler accepts clients and performs their commands. A Service makes a Handler for each client. The Handler
// runs the task of the client's session (package session): it takes one command after another from the
// session, and answers each, or has the session forward it. It decides nothing about locks: Locks says
// whether a lock is held.
//
// # One command
//
// perform (perform.go) asks the router for the command's plane. It checks whether the user may send the
// command (auth.go) and whether its keys have just moved. Most commands then go the way of their keys. The others
// have a function in the table byName (byname.go). As long as nothing about a client needs a look (isPlain), all of this
// is left out for commands whose way follows from their one key. The files are families of commands:
//
//   - handshake.go: which user the client is, and how it wants its replies
//     (upstream.ClientState). auth.go judges logins by the users of the configuration,
//     authupstream.go lets the upstream judge them. Locks need no upstream, but their clients
//     must log in: accepted.go remembers logins that the upstream has accepted.
//   - info.go, script.go: INFO and SCRIPT, which concern both planes.
//   - multi.go, transaction.go: WATCH, and MULTI to EXEC. multi is a machine without I/O that decides about
//     each command, and transaction.go does what it says.
//   - subscribe.go, tracking.go: subscriptions and CLIENT TRACKING. Package pubsub sends what comes
//     from the masters.
//   - clients.go: CLIENT LIST, KILL and the like, about the clients of this process (registry.go). Clients see the
//     ids of the proxy. The upstream has other ids for the clients' connections to it. TRACKING REDIRECT and UNBLOCK
//     name a client to the upstream, so the ids in them are replaced. A client gets a connection there, whose id is
//     learned, when it asks for CLIENT ID.
//   - locks.go: commands on lock keys, which package lock performs, and leases.
//   - forward.go: every other command goes to the upstream as it came, and by which connection. Package
//     unruled looks at those that locks use.
//
// # Clients come and go
//
// Serve (server.go) may be called for several listeners. A client beyond limits.clients gets an error
// and is closed. Every other client gets a Handler, which runs on the loop of its Env. The sweep (sweep.go) makes each
// session check for what no other goroutine notices: an idle client, unread replies, a stuck upstream. So no session
// needs a timer while all is well.
//
// Shutdown stops accepting and lets sessions finish what they have read. StopAccepting does the
// first part alone, so that clients can leave by themselves before the second. When its context
// ends, it cuts off the remaining sessions. It waits for all goroutines of the package.
//
// At the limit of open files no client can be accepted. The log says so once a minute. HTTPErrors
// gives the HTTP server of the admin address, which meets the same limit, a log with the same pause.
//
// # State
//
// Each family has its state in a struct of its own, in its own file. What others see of a client is published
// (publish). All else is asked of its session, by methods that any goroutine may call.
//
// # Goroutines
//
// A Service has the sweep, and a goroutine for each call of Serve. A Handler starts none. Its session's goroutine calls it. Any goroutine may call Inspect, Reloaded and status.
// Many goroutines may use a Service at the same time.
//
// Passwords and other arguments of a login are never logged, nor is a name that belongs to no user: it
// may be a password.
package handler
