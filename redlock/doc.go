// Package redlock answers one question: is this lock ours, and for how long?
// It asks N independent Redis masters and counts. It knows nothing of RESP
// servers, sessions, configuration or metrics.
//
// # Words
//
// A ballot is one question put to every master at the same moment. A vote is a
// master's answer: granted, refused or failed. The verdict is what the votes
// come to: pending, won, lost, or no quorum. The quorum is N/2+1. Validity is
// what is left of a TTL after the time the ballot took and the clocks' possible
// drift. A stream is the one ordered connection to a master and database. A
// debt is what a master that is away must still be told.
//
// # Rooms
//
// This package asks, waits, undoes and keeps the order of things. What can be said
// without asking is in rooms below it, each of which can be read with those below it
// only: quorum (votes in, verdict out), roster (who may vote), effect (what a command
// did to its keys), script (what a script does, by its text), rdb (DUMP payloads) and
// resp (replies). Room stream has the connections. Which room may import which is in
// imports_test.go, and go test -v -run TestRoomsImportDownwards shows it.
//
// # From a request to its verdict
//
// Acquire (acquire.go) takes its turn (turns.go), and hold (ballot.go) puts the
// question on every master's stream (stream/stream.go). The stream's reader casts each
// answer, the tally (package quorum) gives the verdict as soon as no missing vote can
// change it, and what was granted in vain is taken back on the same stream
// before the caller hears of it.
//
// # The published algorithm, rule by rule
//
// The rules are those of "Distributed Locks with Redis" (redis.io).
//
//   - "It gets the current time in milliseconds": the monotonic clock, read
//     before the first byte is queued (ballot.go, hold).
//   - "It tries to acquire the lock in all the N instances [...] using the same
//     key name and random value": at the same moment rather than in sequence,
//     which the text recommends under "Retry on failure" (ballot.go).
//   - "A timeout which is small compared to the total lock auto-release time":
//     Config.MasterTimeout ends the ballot, never the stream, so a late answer
//     is still read and taken back if need be (ballot.go, expire).
//   - "If and only if the client was able to acquire the lock in the majority
//     of the instances, and the total time elapsed [...] is less than lock
//     validity time": quorum.Tally.Acquire and Locker.validity, which also takes off
//     the clock drift.
//   - "If the client failed to acquire the lock for some reason, it will try to
//     unlock all the instances": takeBack (acquire.go), on each master that
//     granted or may have granted. One that refused is left alone: there a
//     constant value would release another holder.
//   - "Retry after a random delay in order to try to desynchronize": when the
//     votes were split (acquire.go). When the lock is simply held, the client's
//     own retry loop decides.
//   - "Releasing the lock is simple": by value only, release.lua, also for a
//     bare DEL (release.go). Masters that were away are told when they are back
//     (stream/queue.go).
//   - "Extending the lock": extend.go; an extension counts only with validity.
//   - "Delayed restarts": enforced; see "Who may vote".
//
// # What the text does not say
//
//   - Order. An undo must never overtake its acquire. Pooled connections do not
//     promise that; one stream does. Across a reconnect the successor first
//     kills the old connection by its CLIENT ID, so that nothing it left in a
//     stopped master's buffers runs after the undo (stream/connect.go).
//   - Turns. Two clients of one process would split the votes between them
//     again and again; they go one after the other (turns.go). A master that
//     still owes an answer on a key is not asked for that key; where that leaves
//     too few, the question waits a moment for those answers (owing.go).
//   - One order. Ballots on one key are queued in the same order on every
//     stream (order.go). Otherwise a release by a constant value could delete a
//     vote that a later acquire has just counted.
//   - Debts. What a master could not be told is told before anything that may
//     create a lock there (stream/stream.go, mayCreate), and spares what can be told to
//     be a later lock (stream/queue.go).
//   - Late grants. A master that found nothing to release may get its grant later,
//     from another process, so it is told of the release once more
//     (releaseagain.go).
//   - Unknown votes. A connection that breaks unanswered leaves a grant that is
//     only possible. It is taken back by value, and only if the value is long
//     enough (shortValue) not to be a constant that many clients share.
//   - No quorum is not "no". Nobody can know, and the outcome says so.
//   - Locks without TTL would live for ever where a ballot was lost. They are
//     taken with a provisional TTL and made permanent once won (acquire.go).
//   - Everything else on a lock key, scripts above all, is an examined run
//     (run.go, effect): the client's own command between two looks at its
//     keys. Votes agree by the reply (resp.Equivalent) and the keys' state
//     afterwards (rdb), streams and modules' types by their bytes, so that
//     what has a master's own clock in it agrees with no other master, nor do
//     masters of different versions: a quorum of equal votes wins and nothing less, also
//     where the run deleted, for by a deletion a fair lock is taken from its queue.
//     What loses is put back exactly (effect), deletions too. Where a quorum
//     deleted, a copy goes that was the same, or that drifted, as a counter can
//     (runsettle.go). It has its turn like an acquire, whatever it does; a script
//     none of whose runs has acquired so far goes before those that wait (run.go).
//   - Copies that disagree (quorum/existence.go, mend.go). A key exists if a quorum holds
//     something under it, and may exist where those that did not answer, or may not
//     vote, would make one; all answers go by that. Who meets copies that nobody can
//     hold the lock by, or that differ, has them looked at twice, further apart than
//     a ballot can last. What has not changed is deleted by its image, or, where all
//     masters vote, made equal: to what a quorum has, or else to the largest integer,
//     or the largest group. A DEL, and a run, that cannot do without waits for that.
//   - A script that by its meaning is compare-and-delete of one string key
//     (script.Recognise) is not examined: it goes out as it came, its answer tells what
//     it did, and it is a release (recogniserun.go) by the same rules as our own.
//   - WATCH remembers what each master showed (watch.go). A transaction goes out
//     only where a guard in front of it has said that this still is so (stream/gate.go).
//   - Defects. A panic costs the request or the connection that it happens in: turns,
//     orders and what masters owe are given back by deferred calls, a ballot whose
//     request has panicked is undone (ballot.go, abandon), a stream is dialled anew
//     (stream/contain.go), and an Observer that panics is not heard (calm.go).
//   - Refusals. Whatever error but WRONGTYPE a command of our own is answered with,
//     it is no answer, and the debt stays. A master that refuses what locks need is
//     not asked for any until it does all of that again (stream/probe.go).
//   - Wake-ups. One connection to each master (notify/listener.go), opened when somebody
//     wants to hear, tells of messages and changed keys. A message counts once a
//     quorum has published it (notify/heard.go), a change likewise (notify/keychanges.go); what
//     a quorum did not tell of is told after a while, so that none is lost. Where
//     fewer than a quorum were listened to, subscribers hear of a gap, and a
//     listener that had to reconnect makes every key a changed one
//     (notify/subscription.go).
//
// # Who may vote
//
// Redlock is safe only if masters are independent, remember what they granted
// and keep time. All three are checked. The rules are those of package roster, to
// which voters (voters.go) brings what is observed, and whose marks it has written.
//
//   - Every batch of questions ends with GET of the marker, TIME, and ROLE or INFO
//     replication (stream/batch.go, certify.go, replication.go). Its votes count only once
//     all are read and in order.
//   - A longer TTL than is on record is put there before it is granted
//     (stream.send, Locker.raise), and on a quorum of masters.
//   - A master in quarantine is asked everything, so that it fills up with the
//     locks of the day; what it deletes counts, what it shows, grants, gives or does
//     not find does not (ballot.go): a copy of its own completes no quorum.
//   - What was seen may change and change back before a mark is executed, so a mark
//     says by which time of the master it must have been (Locker.lateMark).
//   - Time that this machine was suspended is time, where its kernel knows of it
//     (slumber.go). A clock that jumps is found in clock.go.
//
// # Redlock's rules, what is said against them, and the tests
//
// The rules are those of the published algorithm; the objections are those of
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html and of
// people who run Redis. Each test fails without its rule; TestMutantsAreCaught
// leaves the rules out one by one and shows that.
//
//   - Ask all N masters, with the same key and value: at the same moment, each over one
//     ordered connection. Shown by TestTimelineAcquireAsksAllMastersAtTheSameMoment.
//   - Give up on a master quickly: a ballot ends after master_timeout; the verdict comes
//     as soon as it is certain. Shown by TestTimelineAHungMasterSlowsNobody,
//     TestPausedMasterDelaysNobody.
//   - A majority, with time left: TTL - elapsed - 1 % - 2 ms must be above zero when the
//     verdict is given. Shown by TestTimelineMajorityWins,
//     TestTimelineValidityIsTTLMinusElapsedMinusDrift, TestGrantsSlowerThanTheTTL.
//   - Unlock everywhere after a failure: what was granted is taken back by value, before
//     the client hears the verdict. Shown by
//     TestTimelineAFailedAcquireUnlocksEverywhere, TestLateGrantsAreUndone. What
//     remains: a value of less than 16 bytes whose grant is only possible is left to its
//     TTL.
//   - Retry after a random time: when votes were split; clients of one proxy take turns
//     and never split them. Shown by TestTimelineASplitVoteIsRetriedAfterARandomDelay,
//     TestTimelineAcquiresOfOneKeyTakeTurns.
//   - Release only one's own lock: by value, a plain DEL too. Shown by
//     TestTimelineNoMasterIsEverToldABareDEL,
//     TestTimelineAReleaseSparesAClientThatIsJustAcquiring. What remains: a client that
//     sends DEL deletes whoever's lock it is, as on one Redis.
//   - Extend only with a majority and time left: so; a changed TTL is never undone.
//     Shown by TestTimelineAnExtensionNeedsValidity,
//     TestTimelineAChangedTTLIsNeverUndone.
//   - Restart late ("delayed restarts"): enforced: a master that may have forgotten does
//     not vote until every lock has ended. Shown by
//     TestTimelineAMasterThatForgotDoesNotVoteUntilEveryLockHasEnded, TestCampaign. What
//     remains: locks without TTL or with one above max_quarantine.
//   - A master restarts empty, or is flushed, and grants again: its marker is checked
//     with every batch of questions, in each database; FLUSHDB concerns the locks of
//     that one. Shown by TestTimelineAFlushIsNoticedByTheVeryNextBatch,
//     TestTimelineEveryDatabaseHasItsMarker, TestCampaignFindsUncheckedMasters. What
//     remains: clients that speak to the masters themselves do not know of it.
//   - All masters restart together, or are flushed: a set without markers begins in
//     quarantine for restart_delay, or by -new. Shown by
//     TestTimelineANewSetBeginsInQuarantine,
//     TestTimelineASetThatEverybodyFlushedIsReplacedByOneInQuarantine, TestCampaign.
//     What remains: TTLs above restart_delay, if no proxy lived through it.
//   - Clocks jump: a master's clock is compared with ours in every batch; a jump forward
//     counts as amnesia, also of a quorum; when all jump at once by the same amount it
//     was the proxy that stood still. Shown by
//     TestTimelineAClockThatJumpsForwardHasForgotten,
//     TestTimelineManySmallJumpsCountLikeALargeOne,
//     TestTimelineAQuorumThatJumpsWhileOthersDoNotHasJumped. What remains: a jump while
//     no proxy runs; all masters' clocks set forward by one amount in the same second.
//   - The process is paused before it reads the votes: a vote read after the deadline is
//     late, also if it lay in a buffer. Shown by
//     TestTimelineAVoteReadAfterTheDeadlineIsLate.
//   - A late message undoes what came after it: one stream a master; a new connection
//     first kills the old one by its CLIENT ID. Shown by
//     TestTimelineAnUndoFollowsItsAcquireOnTheSameStream,
//     TestTimelineTheSuccessorKillsItsPredecessorFirst. What remains: a plain EXPIRE
//     executed very late (above).
//   - N entries of the list are one server: each server has one number in its set, and
//     no other entry counts it. Shown by
//     TestTimelineAMarkerOfOthersIsNeverOverwrittenAndNeverVotes.
//   - The list of masters changes: one at a time, by an epoch that a quorum knows of;
//     the new one begins in quarantine. Shown by
//     TestTimelineAReplacedMasterStopsVotingAndTheNewOneBeginsInQuarantine,
//     TestProxyStartedWithAnotherMaster. What remains: a proxy *started* with so many
//     other servers that no majority is left.
//   - A failover leaves two masters: a promotion is a replacement: the others record
//     which server has the vote, and it begins in quarantine. Shown by
//     TestSentinelSplit, TestSentinelLockMaster.
//   - The client is paused and acts on a lock that has ended: nothing; no lock service
//     can. Use a fencing token that the resource checks.
//
// # What is not promised
//
// A lock is a lease. A client that pauses beyond its validity can act without
// it; only a fencing token that the resource checks stops that. One constant
// value shared by clients of several processes can lose a lock to a foreign
// release, and so can one constant value whose process crashes. A plain EXPIRE
// goes to every master at once, so one that executes it very late, when the lock
// has ended and another process's client holds it, can shorten that lock there.
// Locks without TTL, and those that live longer than Config.MaxQuarantine, are
// not covered when masters forget them. Clients that speak Redlock to the
// masters themselves do not know of quarantines, and are as safe as their
// masters' memory. A jump of a clock while no process is there to see it is not
// noticed. Where all masters have forgotten and no process lives that remembers,
// locks that live longer than Config.RestartDelay are not covered. A process started with other servers in so many places that fewer than N-Q+1
// masters are left which remember cannot be told from one that finds its masters
// restarted, nor can a name that leads a process, while it runs, to another server
// than before, where the one before lives on for others.
package redlock
