// Package lock is the lock plane. It turns a command on lock keys into requests to the
// masters, and their outcome into a reply. Package redlock, behind Locker, decides
// whether a lock is held. Nothing here does. The package knows no session and no
// server. Everything about a client comes with each Command. For the settings that a
// reload may change, it calls three functions of Config.
//
// # One command
//
// Plane.Do chooses the request by the command's name (decide in plane.go). Commands
// with a request of their own are parsed as Redis parses them (options.go) and
// sent in commands.go. Those on several keys become one question for each key (keys.go).
// A scan of a collection becomes a read of the whole (scan.go).
// All other commands, scripts (eval.go) and transactions (transaction.go) are examined
// runs: the masters run the command, and its effect on the keys is their vote. Each
// command ends with an answer (answer.go). The reply is made from it, and so is all that
// record.go then tells of it to leases, lines, events, metrics and the log. So they cannot
// disagree.
//
// The plane remembers the texts of scripts (scripts.go).
//
// Absolute times become relative here, also in a transaction, so the masters' clocks need
// not agree. A command that deletes its key whoever holds it, such as DEL, RENAME or
// EXPIRE 0, goes only to masters that hold what a quorum holds. On other masters it would
// erase the votes of a client that is just acquiring.
//
// # What a caller may rely on
//
// Do and Exec append exactly one reply. No method keeps its arguments after it has
// returned. The context ends when the client has gone, and the method returns soon
// after. Any number of goroutines may call. The value of a lock is a secret: it is
// never logged and never a label. A panic reaches the caller.
//
// # Who asks again
//
// A blocking command (blocking.go), and an acquire whose rule has a wait (inline.go), ask
// again when their turn in the line of their key comes (lines.go). Package redlock
// decides how often a request asks one master. A client may repeat a command that got no decision.
//
// # Goroutines and locks
//
// A command runs in its caller's task or goroutine. Those for which Parks is true may run on the
// event loop: they leave it before anything that blocks. Only a command on several keys starts
// more goroutines, which end before it returns. Only the lines and the texts of scripts have mutexes.
package lock
