// Package roster decides which masters may vote. It holds no connection, starts no goroutine, reads no clock, takes
// no lock and draws no random number. Observations come in, each with its time. Writes for masters and notices for
// people come out.
//
// # The idea
//
// A master that has forgotten locks must not vote until those locks have ended, and processes must agree about who
// the masters are, at least so far that their quorums meet. A process can restart, be cut off or stand still, so the
// masters themselves keep both facts, each in a key, its marker (package marker). The marker says to which set the
// master belongs and which number it has there, in which run of its server and since when it remembers, and for how
// long after that it does not vote: its quarantine. The marker is lost together with the locks. So a server without a
// marker of its present run has forgotten, and whichever process finds that out writes a new one, with a quarantine
// as long as any lock that may have been forgotten. The longest TTL granted and the record of the masters (package
// members) are in so many markers that a master which forgot can learn both from the others. Most rules are for
// markers that deceive, for masters that know but are away, and for servers that are replaced while somebody still
// counts them.
//
// # What a caller does
//
// The caller makes a Roster with New, and lets one goroutine at a time use it. Step takes an event, a value, each with its
// time:
//
//	r.Step(roster.Connected{Place: p, Run: run}, now)          // a new connection; Disconnected when it has ended
//	r.Step(roster.Checked{Place: p, Text: text, Asked: sent}, now) // its marker was read, and differs from the one before
//	standing, marker := r.Judge(p)                             // what follows, apart from the time
//	st := standing.At(marker, reading, limits)                 // what follows for the votes of this batch
//	r.Step(roster.Noted{Place: p, Standing: st}, now)          // the state of the place, if it has changed
//
// Asked says for all other checks when their questions were asked. Other findings are Replicates and Evicts. At each beat,
// and when Ready says so, the caller asks what to write:
//
//	for _, w := range r.Tick(now, limits) {
//		if write(w) { // if the marker of its place is still w.Seen, and not long after now: that may change and change back
//			r.Step(roster.Wrote{Write: w}, now)
//		}
//	}
//
// After each of these calls, Ready returns what has come up: notices for people, whether to call Tick at once, and a
// version. When the version has risen, each place that was judged must be checked and judged again. A reload gives a Change to
// Propose, waits until Heard says that enough others know it, and then Step takes what is Listed. Status and Prospects
// are for people and for those that wait.
//
// # What it promises
//
// Safety: any two sets of masters that two processes count as voting at overlapping times share a server process that
// remembers. This holds as long as locks live no longer than Limits.MaxQuarantine, clocks keep within
// Limits.ClockDrift, Limits.RestartDelay is at least Limits.LeastRestartDelay, no marker is written later than
// Limits.LateMark, all processes have the same Limits and these rules, and the operator follows TellAll.
//
// Progress: a quorum of servers votes when it has been up, reachable and quiet for Limits.MaxQuarantine, Limits.RestartDelay
// and ten seconds, if somebody knows who the masters are. model_test.go checks both promises in worlds full of faults, and
// the scripts in testdata show the rules. redlock/spec has the same rules in TLA+. Where a rule has a name there, it has the
// same name here.
//
// # Forgetting (plan.go)
//
//   - Who has forgotten. Four findings begin a quarantine: a missing marker, a marker of another run of the server, a
//     clock that jumped forward (TTLs ended early), and a new replication id of a server that was a replica (it may
//     have loaded another's copy). A restart with data is no exemption, because a snapshot may be old.
//   - How long. The quarantine is the restart delay, or the longest TTL granted if that is more, up to
//     Limits.MaxQuarantine. A longer TTL is recorded on a quorum of masters before it is granted, so the others know
//     it. They are asked a ballot's patience after the master forgot, because a ballot that raises the TTL may be
//     under way (Roster.covers). The record also goes down: it turns, and keeps earlier TTLs until they have ended
//     (Limits.Turn).
//   - LongestTTLFromEnough, CapOnRecord, CapRatherThanWait. If the longest TTL cannot be learned from so many others
//     that each quorum has one of them, the cap is assumed. This is so for a process that has just started while a
//     master that may know the TTL is unreachable. It is so for every process that reaches too few masters for the
//     restart delay: a dead minority does not keep a restarted master out for ever. The record has the cap, too,
//     because the next master that forgets may have no other one to learn from. It turns like any other. The quarantine
//     ends early when enough others that remember have answered, and have no cap on record (isGuess).
//   - EarlierListTells. The masters that tell must also be in each quorum of one master more: the last one may have been
//     removed a moment ago, and a lock of before may be on it. So of four masters, the three others must tell.
//   - Eviction. A master that may evict locks when its memory is full does not vote. Once its policy has changed, it
//     counts as having forgotten what it may have evicted.
//   - Whole servers. An event that concerns a whole server, such as a restart, is written by one script to the
//     markers of all its databases, used or not, through database 0, which every process uses. So a marker that is
//     missing in an existing set was flushed, and only its database's locks with it. If SELECT is forbidden, there is
//     database 0 only. The script reaches the first 1024 databases (marker.Databases), so others hold no locks.
//   - SWAPDB. A marker names its database. If it lies elsewhere when a marker of the server is written, it names none
//     from then on (marker.Nowhere). Else a second SWAPDB could bring it back, without the locks granted meanwhile.
//   - Every TTL is recorded in database 0, too, where all processes look. If that one was flushed, its next marker
//     takes over the longest TTL that the other databases tell.
//   - Fencing tokens (tokens.go). The marker of database 0 ends with the largest token that the master knows, and a
//     token counts if a quorum has recorded it. So a master that may have forgotten learns it as it learns the
//     longest TTL, from N-Q+1 others that remember. If it cannot, its record begins at the time in ms, and so does
//     that of a new set.
//   - Clocks and standstills (jumps.go). If the clocks of all masters jump at once and by the same amount, this
//     process stood still: those votes do not count, and nothing is written. If a quorum jumps and others do not, the
//     quorum has jumped. So has a single master. A clock that is set right begins a quarantine.
//
// # Who the masters are
//
//   - Identity. If a marker names another set, another number or another size of the set, its master never votes, and
//     the marker is never overwritten. The exception is a leftover marker of a flushed set in a database other than
//     0. A server under two names has one number only. Replicas and cluster-mode servers never vote.
//   - A new set (founding.go) looks like a set that forgot everything, by restarts or by FLUSHALL. So it begins only if
//     all masters have been reached and none has a marker, and it begins in quarantine, unless the operator says that
//     no lock can be held yet. The first master decides if several processes begin a set, or if one restores the set
//     that all masters forgot: it gets its marker before the others. A server's uptime is no evidence. If the operator
//     says so late, that ends the quarantine in which the set began; its end is in the set's id (marker.NewSetID). The
//     word may also be one that was left in a start command. So set ids say when they began, and proxy/ refuses to
//     start with the word if a quorum has had a set for an hour.
//   - One change at a time (joining.go): another server in a place, a server in one more place, or without the last
//     one. Majorities of N masters and of one more or less have a master in common, if they share their servers. The
//     next change waits for Limits.MaxQuarantine, and until all masters vote that are reached (OneChangeAtATime). By
//     then every lock of the list before has ended. The same place may change again at once: the lists in use still differ
//     in one place. A new server counts at once and waits for Limits.MaxQuarantine
//     before it votes (NewServerQuarantined). Within that time, less the longest TTL, the operator gives the new list
//     to all processes, or stops them (TellAll). So a server that was replaced or removed votes nowhere when the new
//     one does. If it is stopped first, its successor is nothing but a master that restarted empty.
//   - Epochs. Each change is an epoch. It is the net for the operator's rule, and in a promotion, where nobody asks the
//     operator, there is nothing else. Enough of the other masters must record it before the new server gets its marker
//     (EpochOnRecordFirst). A process that reads of it follows it: it counts no master that has another epoch on
//     record, and no vote of a ballot that began before (OldListStandsDown, BallotEndsWithEpoch). It goes on with the
//     masters on record that its list has. Of several changes at the same moment none is forgotten.
//   - A server that joins need not come by a reload. Sentinels may name it, or the list of a process that has just started.
//     So an unknown server without a marker of its present run is taken for new, if others remember. A restarted server
//     does not join anew if a living process knows it: that would stop the votes of all others for a moment.
//     A process takes a join back if the server goes away before this process has read of the join in a marker. A
//     server that was replaced comes back only without its marker and by a reload, and a process with an old list does not
//     bring it into a new set.
//   - A process follows the record, whatever its list is. What its list has beyond the record does not count.
//
// # What a process must distrust
//
//   - After it learns of another epoch, it counts no votes for Limits.MasterTimeout, because a running ballot may
//     have counted the replaced server (Standing.At).
//   - After it stood still, it begins no epoch and no set from what it read before (view.isRecent), and mends no
//     missing marker (view.hasLapsed). An answer does not count if its question came before a jump was written down
//     by way of another database (view.isStale).
//   - After its start, it watches the clocks before it counts votes: others may be about to write down a jump.
//   - Other versions. A marker of a later version is not read here, so it tells nothing of joins and TTLs
//     (view.tellsAfter). While a place shows one, this process writes no markers, and it writes again when that
//     place shows a marker that it can read, or a reload names another server. A marker of an earlier
//     version that is not read any more only keeps its own master from voting.
//
// # Four exceptions
//
//   - OnlyMarkersTell: a master that has forgotten counts as one that was asked. Two masters or more forget at the same
//     time a longer TTL than any before. The process that gives them their markers has not read it, and reaches none
//     that remembers it (testdata/flush_unread.txt, and OnlyMarkersTell among the histories of redlock/spec). Or all
//     forget, and no process lives that has read it. Then they wait for the longest TTL that this process knows, or for
//     Limits.RestartDelay, and longer locks may be granted twice. Otherwise a loss of power of all masters would stop
//     all locks for Limits.MaxQuarantine. A set of one master has nobody else to ask. For the operator: set
//     restart_delay above the longest TTL if all masters may lose power together.
//   - A promotion, a process that is cut off from it, and a master that forgets the record, together: that process
//     gives the master its former record, and counts it with the server before (testdata/replacement_forgotten.txt, and
//     exception-promotion among the histories of redlock/spec). It is the same if the operator breaks TellAll, or if
//     masters lose their data and most of those on record are unreachable for a process that follows. For the operator:
//     stop a proxy that is cut off from masters while Sentinels promote.
//   - All masters forgot, and got markers of two sets: the new one is not finished within Limits.RestartDelay
//     (testdata/flush_left.txt), or most of its masters are flushed before all processes know it, or another process
//     restores the old one on a master by what it read just before the last one forgot. No lock is granted twice. For
//     the operator: the masters of the smaller set are rejected until they are flushed. Promoted servers wait in the
//     same way if too few others remember.
//   - SWAPDB, twice, with a database that the proxies' user may not SELECT or that can hold no locks, or while a
//     process of an earlier version mends markers, or within the moment between a lock and the check behind it.
//     Nothing tells then that the latest locks are missing. For the operator: do not use SWAPDB on masters.
package roster
