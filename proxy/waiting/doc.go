// Package waiting keeps the lines of commands that wait for a key on the masters: of acquires
// whose rule has a wait, and of blocked commands such as BLPOP. They are served in the order in
// which they came.
//
// # One line
//
// A line belongs to one key in one database, and to what those in it wait for (Kind). Only the first in the
// line, its head, asks the masters. The others ask nothing. The head makes a try in these cases:
//
//   - A release passes through this process. Released hands the lock over at once.
//   - The masters tell that the key has changed. So the head of each process hears of a
//     release or a push through another one, and of a lock that has ended. Then these heads compete.
//   - The line has just begun, or the head before ended without a grant: nobody could decide, or
//     it took an element of several.
//   - Nothing of this happened for a second. This is a safety net for lost notices. If the
//     masters announce no changes, the head polls instead.
//   - Its time is over: then it asks once more, in its turn.
//
// The first head of a line tries before the masters announce changes of the key to this process. If it must wait,
// it asks for them, and then tries again.
//
// A grant changes the key, too. A notice that comes shortly after a grant is most likely
// that of the grant. It calls for a try only when these notices have come, so none is lost.
//
// # Out of turn
//
// Some try at once, also behind others (AtOnce), because they may get something while these wait.
// A holder may take its lock again by a script. If that writes nothing when it does, it looks like a refusal.
// Then it is held back for the whole wait, and gets its reply then. A blocked command may find something under
// another key. After a try that found no quorum (Again), a place tries again soon, in its turn or not.
// All of them wait while the head makes a try, or is about to.
//
// # Several keys
//
// A request with several keys stands in the line of each. An acquire waits until it is the head of all. It joins
// all of them at once, so of two acquires the same one is first in every line that both
// share. No two wait for each other. What takes from any key, as BLPOP does, is called as the head of any.
//
// # What makes a wait longer than its turn
//
//   - If the notice of a release through another process comes within 25 ms after a grant
//     here, it waits until these 25 ms are over (ownNotices).
//   - A lost notice costs up to a second (recheck), and masters that announce nothing up to
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
// the line goes on. The package never says that a lock is free. Only the masters decide that. A
// process has at most one request for each client, so the limit of clients bounds the lines.
//
// # Goroutines and locks
//
// The package starts no goroutine. The mutex of Lines is held while it calls Untrack, so it
// comes before those of the tracker. Track is called without it. No mutex is held during a try.
package waiting
