// Package heal copies the locks that a quorum holds to the masters that lack them.
//
// A lock that was won while masters were away stays on a bare majority until it ends. A
// lock or a counter without TTL is lost when masters forget one after the other, although
// each waits for its quarantine. A Healer looks at all keys now and then, and whenever a
// master has joined. It copies what a quorum of voting masters holds to the masters of the
// set that have nothing under the key. decide.go decides, scan.go finds, write.go writes.
//
// # One key, step by step
//
//	look    A quorum of voting masters holds one content. Others answer "absent".
//	quiet   2 s at least, longer than any ballot of any process
//	look    The same content, on a quorum of the same masters. They are still absent.
//	write   Each absent master writes the copy.
//	mend    Copies of a lock that was released meanwhile are strays (package mend).
//
// The second look and the write are under the turn of the key (package lane). So no other request of this
// process creates the key in between.
//
// # Why no copy can make a second holder
//
// A holder is made by a quorum of masters that have nothing under the key, or by a quorum
// of equal votes. A copy takes a free master away, so it never helps a SET NX. A second
// holder would need that a vote is deleted, or that a vote counts and should not. Row by
// row:
//
//   - Another holder's vote is never overwritten. The master writes only if it has nothing
//     under the key, in one script (effect.AppendReplace).
//   - An acquire that is under way on the master finds the copy and is refused there. That
//     is one vote less, and a single Redis would have refused it, too. If it comes first,
//     the copy is not written.
//   - The order on the key. The write goes through the masters' streams, so it is behind
//     all that this process sent before. A master that owes an answer about the key is not
//     written to. As long as the write is unanswered, this process asks the master for no
//     lock on the key.
//   - A write that comes late writes nothing. Each write names a time of its master's own
//     clock, one master timeout after the look. A stopped master or process, and a broken
//     connection, cannot bring back what was released in between.
//   - The lock was released between the look and the write. Then at most N-Q masters have
//     a copy, which is no quorum. The Mender deletes it, by its rule for strays, or a release
//     that found nothing deletes it when it comes again (mend.ReleaseAgain).
//   - Two processes heal at once. The second finds the first one's copy, and writes nothing.
//   - No copy ends before the quorum's do. The others may forget, and the holder relies on
//     the time that it was promised. A copy gets the time for which a quorum still holds
//     the lock, as a time of its master's own clock, so what passes before the write is
//     gone. A copy may outlive the lock by twice the duration of the look, on N-Q masters, or
//     longer if the TTL was shortened before the write. They are not free meanwhile, which hurts
//     nobody but one that waits.
//   - Longest TTLs. The write records the copy's TTL in the master's marker in front of it,
//     as an acquire does. So a master that forgets the copy stays in quarantine as long.
//   - Quarantine. A master in quarantine gets copies, so that it has them when it votes
//     again. Nothing that it shows counts before, and healing writes no marker. A quorum
//     of *voting* masters must hold what is copied, so a lock whose votes were forgotten
//     is not brought back.
//   - Certification. The looks count only votes whose batch ended with a check of the
//     marker in order. A master that the roster rejects gets no copy.
//   - Stale structures: a run changed a hash or a counter on the others, and missed this
//     master. Votes of a run must be equal, so a stale copy is a vote lost, not a vote for
//     an old state. It is on N-Q masters at most, and the Mender makes it equal.
//   - A counter does not go back. A copy is never written over a number. A run on a master
//     that lacks the counter begins at nothing, is outvoted, and gets the winners' number
//     (effect.Due). A stale number can win nothing alone.
//
// # What remains
//
//   - A lock that ends within about two quiet times is left alone.
//   - A key whose content changes more often than that is healed when it rests. A key that
//     differs on the masters, so that no quorum holds one content, is not healed.
//   - A release may reach the masters that lack the lock within the milliseconds between a
//     look and a write, while another master does not receive it for seconds. Its client was told
//     QUORUMLOST, or that master is late. With the copies a quorum may hold the lock until
//     that master gets the release, and they may be healed, too. Then the lock stays until its TTL ends,
//     and one without TTL until somebody deletes it. Nobody else holds it.
//   - A process that crashes before it has its copies mended, or mends a thousand other keys, leaves
//     strays on N-Q masters at most. The next request that meets them has them mended.
//   - A token that a client tried through one process may still have to be undone there on
//     a master. If another process heals that master meanwhile, the undo deletes the copy,
//     also if the lock was extended through the other process by then. Such a client uses
//     one token through two processes (package redlock says what that costs).
//   - Keys of streams and modules are copied as bytes, and masters of an older version
//     refuse them.
//
// # What a caller may rely on
//
//   - With Settings.Every of 0 there is no goroutine and no question.
//   - Work is bounded: one master is scanned at a time, Settings.Rate keys in a second,
//     one key is written at a time, and keys above Settings.Most are left alone. One pass
//     scans so many masters that every quorum has one of them (package scan).
//   - A complete pass has healed everything that was lacking when it began, except what is
//     too large, brief or unequal.
//   - Observer's methods are called with no lock held.
//
// A Healer has one goroutine. Its mutex guards the present settings only.
package heal
