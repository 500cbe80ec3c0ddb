// Package run executes commands on lock keys for which package redlock has no request of
// its own: scripts, hashes, sorted sets, whole transactions.
//
// In an examined run every master executes the client's own command between two looks at
// its keys. Votes are equal if the replies and the keys' states afterwards are. Only a
// quorum of equal votes wins. A master whose vote is not among the winning ones is put
// back exactly as it was (settle.go).
//
// A caller may rely on this:
//
//   - The reply is a winning master's own, byte for byte, or one by which a quorum
//     refused.
//   - A command or a transaction that is no script does not run on keys that hold more
//     than limits.lock_reply lets a master answer (effect.Examination.Bounded). If they
//     hold much, it waits for its turn among all large questions.
//   - A run takes its turn on its keys like an acquire. If no run of a script has acquired
//     a lock so far, the script probably is the holder's, and goes before those that
//     wait. What scripts did is learned, and may be forgotten at any time (recognise.go).
//   - A script whose meaning is compare-and-delete of one string key is not examined. It
//     goes out unchanged, its reply shows what it did, and it is a release by the same
//     rules as our own (recognise.go).
//   - Before a caller hears that a run was won, a quorum of markers has on record the
//     TTL that the run gave.
//   - A try that was not won may have released a lock. Its client never hears that there
//     was no lock. A lock that ended during the try was not released by it.
//   - A script that deletes whatever it finds, as far as its text shows, is executed once
//     if it has deleted something, and so is a transaction with such a script. A
//     second try could delete a lock that another client took after the first one. If the
//     votes of the first try are split, nobody knows what it did, and its client hears that.
//   - A Watch remembers what each master showed. A transaction goes to a master only
//     after a guard has confirmed that nothing changed there (watch.go).
//
// A command, a script or a transaction that deletes keys, whoever holds them, goes behind a Watch of its
// own on those that its client does not watch (Request.Deletes). Else it would delete votes of a client
// that is just acquiring, and two clients could hold the lock. That costs two more round trips. If the
// keys change meanwhile, or votes are split, it looks again, unless a try that was not won has deleted
// something. It spares a lock that its first look did not show. Of a script all keys are watched.
//
// Other requests may delete, too, such as SDIFFSTORE, or a script whose text does not show it. Once a
// try has deleted a key, the next one goes behind a Watch on it (runAfterDeletion). It spares a lock that
// was not there when the first try came. Only masters that had forgotten the script get it without one.
//
// What remains: the first try of such a request may delete votes of a client that is just acquiring. And
// a master that was held up may execute it late, and delete its copy of a later lock. The copy is put
// back if the master's vote is not among the winning ones. If late votes show that a quorum deleted one
// lock although its client heard of no quorum, the lock stays released. And a value that a run replaced may
// come back with the same end through another process, while the first process does not reach a master.
// That master deletes it later, so the lock has one vote less.
//
// # What a client was told of a counter never goes back
//
// Clients of several processes count under one key: INCR, HINCRBY, ZINCRBY. Masters execute that in different
// orders and miss some of it, so their copies differ until they are united (package mend). No number is told
// twice or after a larger one, and no copy that is united is older than one that was told:
//
//   - A number is told if a quorum of voting masters has just that copy, with all its fields and members.
//     So a quorum had it, and any two quorums share a master.
//   - On each of these masters the number only rises. A vote that won is not put back. A run that was not
//     won is put back only if the key still is as that run left it, and the master is told so once: a
//     number comes again, so done twice this would take back what others were told (Runner.putBack).
//     A copy that is outvoted is raised to the winners' and never lowered (effect.Due).
//   - Copies are united only if all masters vote and hold still for longer than any ballot. What a quorum has
//     stands, since one of that quorum had what was told. Otherwise the copies get the highest of each
//     number, and of the fields and members those that a quorum has: what was told is on a quorum, and
//     what fewer have was told to nobody (effect.Unite).
//
// spec/Copies.tla is that in TLA+, with the shortest history without each rule. TestSimulationCounts has
// three processes count while masters restart, are cut off and answer late.
//
// What remains of that. A counter has no TTL, so masters that forget it one after the other forget what was
// told, unless healing is on (package heal). A GET may show a number of a run that is being put back. And if
// copies differ in more than numbers and no quorum has one, such as fields with text, the largest group of equal
// copies stands, or the first of them, which may be one that missed what was told.
//
// The caller says which keys a request has.
package run
