// Package queue holds acquires back until their lock is free. Those that wait for one
// lock stand in a line and are served in the order in which they came.
//
// # One line
//
// A line belongs to one key in one database. Only the first in the line, its head, asks
// the masters. The others ask nothing. The head makes a try in these cases:
//
//   - A release passes through this process. Released hands the lock over at once.
//   - The masters tell that the key has changed. So the head of each process hears of a
//     release through another one, and of a lock that has ended. Then these heads compete.
//   - The line has just begun, or the head before got no decision.
//   - Nothing of this happened for a second. This is a safety net for lost notices. If the
//     masters announce no changes, the head polls instead.
//   - Its time is over: then it asks once more, in its turn.
//
// A grant changes the key, too. A notice that comes shortly after a grant is most likely
// its echo. It calls for a try only when the echoes are over, so none is lost.
//
// A holder may take its lock again behind the others, by a try that comes at once (Looks).
// If its script writes nothing when it does, that looks like a refusal. It is held back for
// the whole wait, and then gets its reply.
//
// An acquire of several locks stands in the line of each. It joins all of them at once, so
// of two acquires the same one is first in every line that both share. No two wait for
// each other.
//
// # What makes a wait longer than its turn
//
//   - If the notice of a release through another process comes within 25 ms after a grant
//     here, it waits until these 25 ms are over (echo).
//   - A lost notice costs up to a second (net), and masters that announce nothing up to
//     100 ms (pollMost).
//   - Heads of several processes may split the votes. Package redlock then tries again after
//     a random delay, as often as its Retry says. If nobody wins, the undos are changes of
//     the key, and wake the heads again.
//   - A process hands a release of its own to its own line first, before other processes
//     hear of it. As long as that line is not empty, a head elsewhere seldom wins. Only its
//     Wait bounds that. No process knows whether others wait elsewhere, so none gives way.
//
// # What a caller may rely on
//
// Serve returns soon after its context has ended. A try that panics counts as undecided, so
// the line goes on. The queue never says that a lock is free. Only the masters decide that. A
// process has at most one request for each client, so the limit of clients bounds the lines.
//
// # Goroutines and locks
//
// The package starts no goroutine. The queue's mutex is held while it calls Untrack, so it
// comes before those of the tracker. Track is called without it.
package queue
