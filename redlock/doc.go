// Package redlock answers one question: is this lock ours, and for how long? It asks N
// independent Redis masters and counts their votes. It knows nothing of RESP servers,
// sessions, configuration or metrics.
//
// # A walk: Acquire
//
//  1. acquire.go: Acquire copies key and value, because undos outlive the request.
//  2. lane/turn.go: acquires of one key in this process take turns. The answer to one that is refused may hold for those
//     behind it, too.
//  3. ballot/box.go: Poll waits until votes can count. ballot/ballot.go: askAll puts SET NX PX on the stream of
//     each master that owes no answer about the key (lane/question.go).
//  4. stream/send.go: Send queues it, behind the debts that must go first (stream/debts.go). If the TTL is longer than
//     the one on record, the record goes first. stream/batch.go writes all that a round has queued, and a check of the master behind it.
//  5. loop: one thread reads and writes the sockets of all streams.
//  6. stream/batch.go: gather reads the answers, and answerBatch hands each out with the check's judgement: is it
//     the same server, does it remember, did its clock keep time (master/judge.go, by roster)?
//  7. ballot/ballot.go: hear and cast count the vote. quorum/tally.go says won, lost or no quorum as soon as no missing vote can
//     change it. ballot/box.go: InTime says whether enough of the TTL is left.
//  8. ballot/end.go: tellOver resumes the caller, and settle has each answer judged. acquire.go: if the lock was not won,
//     Settle has queued the undo of each grant before the caller goes on, and does it for each that comes late.
//  9. acquire.go: Acquire tries again after a random pause if votes were split (ballot/retry.go), or returns the Outcome.
//
// # Words
//
// A ballot is one question put to every master at the same moment. A vote is a master's
// answer: granted, refused or failed. The verdict is the result of the votes: pending,
// won, lost, or no quorum. The quorum is N/2+1. Validity is the rest of a TTL after the
// time of the ballot and the possible drift of the clocks. A stream is the one ordered
// connection to a master and database. A debt is a command that still waits for a master,
// such as an undo or a release.
//
// # Rooms
//
// This package turns requests into ballots and ballots into answers, and undoes what was not won. The
// rest is in rooms below it. You can read each room with only those below it. run executes other
// commands, mend makes copies equal again, heal copies locks to masters that lack them, token gives
// fencing tokens, and scan lists keys and shows people what the masters hold.
// ballot puts one question to every master, and lane orders the questions about each key. master knows
// the masters, stream is the connection to one, and notify receives their messages. loop reads and
// writes sockets, and runs tasks. Some rooms ask nothing: quorum (votes in, verdict out), roster (who
// may vote), marker (its record), effect (what a command did to its keys), script (what its text does),
// rdb (DUMP payloads), resp (replies), members (the record of who the masters are) and timing (how long
// the rules wait). imports_test.go says which room may import which.
// spec/README.md has the rules in TLA+, and the shortest history with two holders without each of them.
//
// # What the algorithm's text does not say
//
//   - Order. An undo never overtakes its acquire, not even across a reconnect (stream).
//     For each key, requests of one process that may create a lock go one after the
//     other. A master that owes an answer about the key is not asked again (lane).
//   - Debts. A debt goes out before anything that may create a lock on that master. It
//     spares a lock if that can be recognised as a later one (stream/queue.go).
//   - Late grants. A master that found nothing to release may get its grant later, from
//     another process. So it gets the release once more (mend/again.go).
//   - Unknown votes. If a connection breaks before the answer, a grant is possible. It is
//     undone by value, and only if the value is long enough (stream.ShortValue) not to be
//     a constant that many clients share.
//   - No quorum is not "no". Nobody can know, and the outcome says so.
//   - A lock without TTL would live for ever if its ballot was lost. It is taken with a
//     provisional TTL and made permanent once it is won (acquire.go).
//   - Everything else on a lock key, above all scripts, is an examined run (run): the
//     client's own command between two looks at its keys. Votes are equal if the replies
//     (resp.Equivalent) and the keys' states afterwards (rdb) are. Streams and modules'
//     types compare by their bytes. So a value that contains a master's own clock equals
//     no other master's, nor do masters of different versions agree on such types. Numbers in
//     replies must be equal, unless they are the time that one of the run's keys has left. Only a
//     quorum of equal votes wins, also if the run deleted: a fair lock is taken by a deletion
//     from its queue. The effects of other votes are undone exactly (effect) and once, deletions too.
//     But a counter (a string, a hash's field, a score) is not put back behind the winners.
//     If a quorum deleted, an equal copy is deleted, and one that drifted, as a counter can.
//   - Copies that disagree (quorum/existence.go, mend). A key exists if a quorum holds
//     something under it. It may exist if the masters that did not answer, or may not
//     vote, could complete a quorum. All answers follow that. A request that finds copies
//     that differ, or too few for a lock, has them mended, and does not wait for that. A DEL
//     that has to look again deletes only what its first look showed, or what that has
//     grown to since: another client may have taken the lock. A
//     script that deletes whatever it finds spares what its first look did
//     not show, and is not tried again once it has deleted something.
//   - Defects. A panic costs only its request or its connection. Deferred calls give back
//     turns and outstanding answers. The ballot of a request that panicked is undone
//     (ballot). A stream is dialled anew (stream/contain.go). An Observer's panic is
//     contained (observer.go).
//   - Refusals. If a command of our own gets an error other than WRONGTYPE, that is no
//     answer, and the debt stays. Each master is asked twice a second whether it refuses
//     what locks need. If so, it is shown as rejected (master/refusal.go). If it could not
//     give locks back, it is not asked for any (stream/probe.go).
//   - Masters that may have forgotten. Redlock is safe only if masters are independent,
//     remember what they granted and keep time. All three are checked with every batch of
//     questions (master/judge.go), by the rules of package roster. A TTL longer than the
//     one on record goes on record before it is granted (stream/send.go), and on a quorum
//     of masters (run/settle.go). A master in quarantine is asked everything, so that it
//     learns the present locks. A deletion by it counts. Its grants, its copies and its
//     missing keys do not count. So its copy completes no quorum.
//
// # Redlock's rules, what is said against them, and the tests
//
// The rules come from "Distributed Locks with Redis" (redis.io). The objections come from
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html and from
// people who run Redis. Each test fails without its rule: acquire.txt and so on are scripts
// in testdata/timelines, which TestTimelines plays. The program integration/mutants changes the rules one by one and shows that.
//
//   - "It gets the current time in milliseconds": the monotonic clock, read before the
//     first byte is queued (ballot/box.go).
//   - "It tries to acquire the lock in all the N instances [...] using the same key name
//     and random value": at the same moment, as the text recommends under "Retry on
//     failure", not in sequence. Each master has one ordered connection. Shown by
//     acquire.txt.
//   - "A timeout which is small compared to the total lock auto-release time":
//     Config.MasterTimeout ends the ballot, never the stream. So a late grant is still
//     read, and undone if necessary. Shown by acquire.txt,
//     and over real servers by integration/faults (its script "masters").
//   - "If and only if the client was able to acquire the lock in the majority of the
//     instances, and the total time elapsed [...] is less than lock validity time":
//     quorum.Tally.Acquire. TTL - elapsed - 1 % - 2 ms must be above zero when the verdict
//     is given (ballot.Box.Validity). Shown by acquire.txt.
//   - "If the client failed to acquire the lock for some reason, it will try to unlock
//     all the instances": by value, on each that granted or may have (acquire.go,
//     takeBack), queued before the client hears the verdict. A master that refused is left
//     alone, because there a constant value would release another holder. Shown by
//     acquire.txt. What remains: a possible grant of a value of less than 16 bytes is left to its TTL.
//   - "Retry after a random delay in order to try to desynchronize": if votes were split.
//     Clients of one proxy take turns and never split them. If somebody simply holds the
//     lock, the client's own retry loop decides. Shown by
//     acquire.txt, waiting.txt.
//   - "Releasing the lock is simple": by value only, also for a plain DEL (release.go).
//     Masters that were away get the release when they are back. Shown by
//     release.txt. What remains: a client that sends DEL deletes whoever's lock it is, as on one Redis.
//   - "Extending the lock": only with a majority and validity left. A changed TTL is
//     never undone (extend.go). Shown by extend.txt.
//   - "Delayed restarts": enforced. A master that may have forgotten does not vote until
//     every lock has ended. Shown by
//     certify.txt, TestCampaign. What remains: locks without TTL or with one above max_quarantine.
//   - A master restarts empty, or is flushed, and grants again: its marker is checked
//     with every batch of questions, in each database. A FLUSHDB affects only the locks of
//     its database. Shown by certify.txt, databases.txt,
//     TestCampaignFindsUncheckedMasters. What
//     remains: clients that speak to the masters themselves do not know of it.
//   - All masters restart together, or are flushed: a set without markers begins in
//     quarantine for restart_delay, or votes at once by -new. Shown by
//     certify.txt, TestCampaign.
//     What remains: TTLs above restart_delay, if no proxy lived through it.
//   - Clocks jump: every batch compares a master's clock with ours. A jump forward counts
//     as amnesia, also of a quorum. If all clocks jump at once by the same amount, the
//     proxy itself stood still. Shown by
//     certify.txt. What remains: a jump while
//     no proxy runs; all masters' clocks set forward by one amount in the same second.
//   - The process is paused before it reads the votes: a vote read after the deadline is
//     late, even if it was waiting in a buffer. Shown by
//     TestTimelineAVoteReadAfterTheDeadlineIsLate.
//   - A late message undoes what came after it: each master and database has one stream.
//     A new connection first kills the old one by its CLIENT ID. Shown by
//     undo.txt, waiting.txt. What remains: a plain EXPIRE
//     executed very late (below).
//   - N entries of the list are one server: each server has one number in its set, and
//     no other entry counts it. Shown by
//     certify.txt.
//   - The list of masters changes: one master at a time, with an epoch that a quorum has
//     on record before the new master votes. It waits for max_quarantine, and within that time the operator gives
//     the list to all processes, or stops them. Shown by
//     changes.txt. What remains: a process that keeps an old list for
//     longer, and a proxy *started* with so many other servers that none is left which
//     remembers. That looks as if its masters had restarted.
//   - A failover leaves two masters: a promotion counts as a replacement. The other
//     masters record which server has the vote, and that one begins in quarantine. Shown
//     by TestSentinelSplit, TestSentinelLockMaster.
//   - The client is paused and acts on a lock that has ended: no lock service can prevent
//     that. Use a fencing token (package token) that the resource checks. Shown by
//     TestTimelineNoTokenIsGivenTwice, token.txt.
//
// # What is not promised
//
// Besides what remains, as said above:
//
//   - If clients of several processes share one constant value, a foreign release can
//     delete their lock. So can a crash of the process.
//   - A command that deletes a part of a collection, whoever put it there (HDEL, SREM, LPOP),
//     can delete what a client of another process has just added. Of such locks only those are
//     safe that a script releases by comparing, as Redisson does.
//   - A plain EXPIRE goes to every master at once. A master may execute it very late, when
//     the lock has ended and a client of another process holds it. Then it can shorten
//     that lock there.
//   - A TTL longer than any before is not covered if two masters forget it in its first
//     second, and the process that gives them their markers reaches no other master that
//     knows it.
//   - A name may lead a running process to another server while others still use the old
//     one. That looks as if the master had restarted.
package redlock
