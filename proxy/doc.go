// Package proxy is the disguise: to a client it is one ordinary Redis, and to
// its operator a process that can be configured, watched and changed while it
// runs. It knows how commands look and where they go; whether a lock is held
// is asked of package redlock, and nothing of that is decided here.
//
// # Words
//
// A session is one client's connection. The lock plane is everything that is
// answered by the lock masters, the upstream plane what goes to the ordinary
// Redis. A rule says which keys are locks; a companion is a key or channel that
// goes with a lock although it is none. What is owed are replies that the
// upstream still has to give. What is in force are the settings that a reload
// may replace.
//
// # From the socket to the reply
//
// One goroutine a session, one path (session.go, perform.go). What has been read
// (package conn) is measured against the limits and cut into commands by package
// wire. perform decides who answers: the proxy itself (handshake.go, hello.go,
// info.go, scriptcommand.go), a transaction (transaction.go), the lock
// plane (lockplane.go), both planes (split.go), or the upstream (forward.go).
// Replies go out in the order of the commands, whichever plane they come from.
// Nothing outlives session.serve.
//
//   - Which plane: package route decides by the command's keys, which package
//     command finds, and by the rules. A reload that changes rules holds keys that
//     change planes back (heldback.go refuses them).
//   - Lock plane: lockcommands.go and lockkeys.go for the commands that have a form
//     of their own (setcommand.go, expirecommand.go), everything else as an examined
//     run (evalcommand.go, locktransaction.go); blocking commands wait for changes
//     (blocking.go, waiting.go). What is said of the outcome is in lockreplies.go.
//   - Upstream plane: a session's own connection, opened at the first command that
//     needs it (login.go), never shared and never redialled once it had state. The
//     session writes, the copier (upstream.go, upstreamcopier.go) copies replies as
//     they come and counts what is owed (owed.go), so that a lock command waits until
//     everything before it is answered.
//   - Wake-ups: package pubsub adds what the masters publish and change to what the
//     upstream tells; subscription*.go and tracking*.go are the commands.
//   - Who may what: config.Accounts, logins.go, permissions.go; where the upstream has
//     the users, upstreamlogin.go and acceptedlogins.go.
//
// Every text that sessions send on their own account is in package wire, and what
// only the lock plane says in lockreplies.go; where Redis has words for it they are
// Redis's.
//
// # Around it
//
// server.go owns the sessions, sweep.go looks after those that are stuck or silent.
// Package config reads the file, knows the users and all limits, and plans what of
// a new file may be put in force; build.go makes the parts of a configuration and
// reload.go puts one in force.
// Package endpoint leads to a server; package inspect asks the servers what they are,
// for -check, the metrics and the log. Package metrics counts, shown.go tells it what
// is in force, standing.go how the masters stand, and HTTP is in admin.go.
//
// # Who owns what
//
// A session owns its socket and its upstream connection, and waits for the copier
// and its watch (watch.go) before it ends. The server waits for its sessions, Proxy
// for the server, the survey and the locker. Only a session's goroutine changes it,
// apart from the few fields that say so; its client's writing side changes hands
// only between two whole replies (conn.Writer).
//
// Secrets are never logged and never a label: values of locks, passwords, and what
// a client sent in a login.
package proxy
