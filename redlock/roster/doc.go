// Package roster decides which masters may vote. It holds no connection, starts no
// goroutine, reads no clock, takes no lock and draws no random number: what is
// observed comes in, with the time at which it was, and what has to be written to
// masters and told to people comes out.
//
// # What a caller does
//
// It makes a Roster with New and lets one goroutine at a time have it. It tells it of
// each connection (Connected, Disconnected), of each marker that is read and differs
// from the one before (Checked), when it asked for the one that was read last
// (Asked), what else it finds (Replicates, Evicts, Jumped, ClockIs, Silent), and how
// each place stands then (Noted): that is Standing.At, by the marker's Standing and
// what the batch's check found besides. Tick says what to write now; Wrote hears
// that this was done. Drain gives what people should be told, whether Tick is worth
// calling at once, and a version: where it has risen, a place that was judged has
// to be judged again by Checked.
//
// A write must be made only where the place's marker is still Write.Seen, and not
// long after it was planned, for what was seen may change and change back.
//
// # What it promises
//
// Any two sets of masters that two processes count as voting at overlapping times
// share a server process that remembers, as long as locks live no longer than
// Limits.MaxQuarantine and clocks keep within Limits.ClockDrift. When a quorum of
// servers has been up, reachable and quiet for Limits.MaxQuarantine, it votes, and
// soon after twice that where it has to wait for dead masters first.
// model_test.go checks both in worlds full of faults, testdata tells the rules as
// scripts.
//
// It is not promised where all masters have forgotten and no process lives that
// knows better: a new set waits for Limits.RestartDelay only, and locks that live
// longer may be granted twice. Nor of a set of one, whose longer TTLs nobody else
// knows. Masters that forgot may be given markers of two sets, where one process
// begins a new one in the moment in which another writes the old one's; only the
// operator can tell them apart. Where servers are promoted, masters that lose
// their data in so many places that too few remember stay out until the operator
// helps.
//
// # The rules
//
//   - The marker (marker.go): in each of its databases a master carries one key
//     that says who it is, in which run of its process it has kept its memory,
//     since when, and for how long after that it does not vote. The judgement is
//     there and not in a process's memory, so that all processes reach the same.
//   - Amnesia (plan.go): a marker that is missing, of another run of the server,
//     a clock that jumped forward, or a replication id that a server has
//     which was a replica, begins a quarantine: the restart delay, or the longest TTL granted if that is more, up to
//     Limits.MaxQuarantine. A longer TTL is put on record before it is granted,
//     and on a quorum of masters, so that one that
//     forgets can learn it from the others, a ballot's patience later, for such a
//     ballot may be under way (Roster.covers). The record goes down: it turns, and
//     keeps what was granted before until that has ended (Marker.turns). A process
//     that has just started and cannot, for one that may know is away, assumes the cap, and so does every
//     process where too few can be reached for the restart delay: a dead minority
//     does not keep a restarted master out for ever.
//   - A master that may evict locks when its memory is full does not vote, and has
//     forgotten what it may have evicted once it may no more.
//   - A restart with data is no exemption: a snapshot may be old.
//   - A new set (founding.go) cannot be told from one that forgot everything, by
//     restarts or by FLUSHALL. All masters must have been reached and none have a
//     marker, and then it begins in quarantine, unless the operator says that no
//     lock can be held yet. How long a server is up is no evidence.
//     The operator may say so late: that ends the quarantine that the set began
//     in, of which the set's id tells the end (newSetID).
//     Nothing tells that word from one that was left in a start command, so
//     set ids say when they began, and the process in proxy/ refuses to start
//     with it where a quorum has had a set for an hour.
//   - What concerns a whole server, such as a restart, is written to the markers
//     of all its databases by one script, also of those that nobody
//     uses, and by way of database 0, which every process uses. So no database has
//     a first use: a marker that is missing in a set that exists was flushed. That
//     concerns the locks of this database only, for what the others hold is there.
//     Where SELECT is forbidden there is database 0 only; one beyond the first 1024
//     begins as one that was flushed. A marker names its database, for SWAPDB.
//   - Markers of the first version were in the databases used only. They are taken
//     over as they are, with what they remember. A process of that
//     version cannot read those of today: it bars such masters, writes over none of
//     them, and has to be replaced before it can lock again.
//   - Masters whose clocks all jump at once and by the same amount say that it was
//     this process that stood still (jumps.go): their votes of that moment do not
//     count, and nothing is written. A quorum that jumps while others do not, and a
//     single master, have jumped. One that is put right begins a quarantine then.
//   - Identity: another set's marker, another number or another size of the set
//     never votes and is never overwritten (but for what is left over in another
//     database than 0 of a set that was flushed there); one server under two names
//     has one number only. Replicas and cluster-mode servers never vote.
//   - Replacement (replacement.go): one master at a time, by an epoch that a quorum of
//     those that stay knows of first, whether they vote or are in quarantine. A
//     process with the old list then does not count the old master any more, and goes on with the others. The new one
//     begins in quarantine, so no quorum with it misses a lock of before. Of
//     replacements that two processes make at once neither is forgotten, and a
//     master that was replaced comes back only without its marker.
//   - Newcomers (newcomer.go): a process that is started with another list, instead
//     of being told by Reload, has a server in a place that it has not met there and
//     that does not have the marker. It joins by an epoch like a promoted one. A
//     process that was there before knows its masters, and takes one that forgot
//     for restarted; who has just started leaves that to it for a while.
//     Where those that have to hear of a newcomer cannot be reached for
//     Limits.MaxQuarantine, it is believed.
//   - Promotion (promotion.go): a master that Sentinels name is another server
//     after a failover, or another run of it, while the one before may live on
//     where some processes reach it. The marker that came along names the run of
//     before. So the promoted one is made known by an epoch like a replacement,
//     and then begins in quarantine.
//   - Who learns of another epoch counts no votes for Limits.MasterTimeout, for a ballot
//     that is under way may have counted the server that was replaced (Standing.At).
//     A process that stood still begins no epoch and no set by what it read before
//     (sight.isRecent). What was asked before a jump was written down by way of
//     another database does not count (sight.isStale).
//   - A process that has just started watches the clocks before it counts votes,
//     for it cannot know of a jump that another one is about to write down.
package roster
