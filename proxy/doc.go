// Package proxy puts the whole proxy together. To a client it looks like one ordinary Redis.
// To its operator it is a process that can be configured, watched and changed while it runs.
// The proxy knows what commands look like and where they go. It decides nothing about locks:
// package redlock says whether a lock is held.
//
// # A walk: SET lock:a token NX PX 30000
//
//  1. handler/server.go: Welcome takes the connection, and handler/handler.go makes it a Handler whose task runs on the loop.
//  2. session/input.go gets the bytes from the loop. wire/decoder.go finds the command in them (session.Next).
//  3. handler/perform.go: perform has route/route.go find the command's keys and the rule of its lock. The first time it
//     looks at the user, at modes of the connection and at transactions, and at the functions for single commands
//     (handler/byname.go). As long as nothing about the client changes, isPlain says that it need not look again.
//  4. handler/locks.go: overlapsOnLocks lets earlier commands of the client on other keys go on meanwhile
//     (session/overlap.go). If it may not, session.Settle waits until all earlier ones are answered.
//  5. lock/plane.go: Do calls decide, lock/options.go reads the options, and acquire asks package redlock, whose doc.go goes on.
//     If the rule says wait, lock/lines.go puts the client in the lock's line first.
//  6. lock/record.go tells leases, lines, events and metrics what happened. lock/answer.go makes the reply of the outcome.
//  7. session/replies.go keeps the reply in the order of the commands, and upstream/writer.go gives it to the loop.
//
// A GET of a key that no rule matches leaves after the third step. handler/forward.go has the session share a connection
// to the upstream (session/upstream.go). The session's member (upstream/member.go) gathers the commands of an input,
// and enters them into the connection with the replies that they expect. The replies come to upstream/feed.go,
// which passes each on to the client to whose command it belongs, as it comes.
//
// # Words
//
// A session is one client's connection. The lock plane is everything that the lock masters answer. The
// upstream plane is everything that the ordinary Redis answers. A rule says which keys are locks. A
// companion is a key or channel that belongs to a lock without being one. Pending replies are the
// replies that the upstream still has to send. The active settings are those that a reload replaces.
//
// # From the socket to the reply
//
// Package handler accepts a client and gives it a session (package session). The session reads commands
// (package wire) and sends the replies in order. Package handler runs the session and
// knows what each command means. It decides who answers: the proxy itself, a transaction, the lock
// masters (package lock), both planes, or the upstream (package upstream).
//
//   - Planes: package route finds a command's keys in its table, compares them with the rules and
//     picks the plane. Its companions.go has the names that libraries derive from a lock's name. When a
//     reload changes the rules, some keys change planes. Commands on these keys are refused for a
//     while.
//   - Transactions: the handler queues the commands after MULTI until the first command with a key
//     decides the plane (handler/multi.go). From then on the upstream gets each command as it comes.
//     The lock masters get all of them at EXEC, as one request.
//   - Upstream plane: commands that need no state of a connection use a few that all sessions share. A
//     session opens its own at the first command that needs it, or at the first of all if the
//     configuration says so. It never redials one that had state. The proxy copies replies as they
//     come. Each connection has a queue of the replies that are pending, with the session that gets
//     each (package upstream). So a lock command can wait until everything before it is answered.
//   - Wake-ups: package pubsub merges the messages and key events of the masters with those of the
//     upstream.
//
// Package handler also knows the clients of the process, for CLIENT LIST and CLIENT KILL. Package lock
// keeps the lines of acquires (wait) and of BLPOP on lock keys. Package lease renews and releases locks
// (renew, on_disconnect). Package unruled looks for locks among the forwarded commands, because no rule
// may match them. Package console answers REDLOCK. Package wire has every text that sessions send of
// their own. Package lock has the texts of the lock plane alone. They are Redis's own texts if Redis has
// one for the case.
//
// # Around it
//
// Package config reads the file, knows the users and all limits, and plans which parts of a new file a
// reload may apply. build.go makes the parts of a configuration, and reload.go applies a new one.
// Package endpoint connects to a server. Package inspect asks the servers for their role and settings,
// for -check, the metrics and the log. Package events remembers what happened to clients, to locks and to
// masters. It logs the masters' states and has all sentences about them, which REDLOCK, INFO, /readyz and
// the page show. It counts what Prometheus asks for; shown.go tells it the active settings. admin.go serves HTTP.
// Package console shows the state of everything there. The program itself starts the servers of -demo. Package
// embedded is a small Redis for masters and upstreams that are "embedded". Package proxytest is for tests
// only. imports_test.go says which room may import which.
//
// # Who owns what
//
// Each package says in its doc.go which goroutines it starts and who waits for them. The handler.Service waits
// for its sessions. The Proxy waits for that, the monitor and the locker. One event loop
// (redlock/loop) reads and writes the connections of clients, of their upstreams and of masters,
// and runs the sessions. The Proxy ends it last.
//
// Secrets are never logged and never a label: values of locks, passwords, and the arguments of
// a login.
package proxy
