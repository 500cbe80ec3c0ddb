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
// The caller makes a Roster with New, and lets one goroutine at a time use it. It reports:
//
//   - each connection (Connected, Disconnected)
//   - each marker that differs from the one read before (Checked)
//   - when it asked for the marker that was read last (Asked)
//   - its other findings (Replicates, Evicts, Jumped, ClockIs, Silent)
//   - the resulting state of each place (Noted). Standing.At computes it from the marker's Standing and the other
//     findings of the batch's check.
//
// Tick says what to write now, and the caller reports each finished write to Wrote. The caller may write only if the
// place's marker is still Write.Seen, and not long after the plan was made, because what was seen may change and
// change back. Drain returns notices for people, whether to call Tick at once, and a version. When the version has
// risen, each place that was judged must be judged again by Checked.
//
// # What it promises
//
// Safety: any two sets of masters that two processes count as voting at overlapping times share a server process that
// remembers. This holds as long as locks live no longer than Limits.MaxQuarantine, clocks keep within
// Limits.ClockDrift, Limits.RestartDelay is at least Limits.LeastRestartDelay, no marker is written later than
// Limits.LateMark, and all processes have the same Limits and these rules. A process with a longer
// Limits.RestartDelay trusts older sightings than the others wait for, and an earlier version needs no sighting. So
// no master may be replaced before all processes have the new limits and the new version.
//
// Progress: a quorum of servers votes when it has been up, reachable and quiet for Limits.MaxQuarantine, Limits.Hold
// and ten seconds, if somebody knows who the masters are. That is a quorum that remembers, a process that reaches all
// masters, or one that had just seen each server that forgot and reaches another one that remembers. model_test.go
// checks both promises in worlds full of faults, and the scripts in testdata show the rules.
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
//   - If the longest TTL cannot be learned, the cap is assumed. This is so for a process that has just started while
//     a master that may know the TTL is unreachable. It is so for every process that reaches too few masters for the
//     restart delay: a dead minority does not keep a restarted master out for ever, if this process had just seen
//     that one. And it is so while the number of masters is about to change: others may grant by the next number
//     already.
//     The record has the cap, too, because the next master that forgets may have no other one to learn from. It turns
//     like any other. The quarantine ends early when enough others that remember have answered.
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
//   - A new set (founding.go) looks like a set that forgot everything, by restarts or by FLUSHALL. So it begins only
//     if all masters have been reached and none has a marker, and it begins in quarantine, unless the operator says
//     that no lock can be held yet. The first master decides if several processes begin a set, or if one restores
//     the set that all masters forgot: it gets its marker before the others. A server's uptime is no evidence. If the operator says so late, that ends the
//     quarantine in which the set began; its end is in the set's id (marker.NewSetID). The word may also be one that
//     was left in a start command. So set ids say when they began, and proxy/ refuses to start with the word if a
//     quorum has had a set for an hour.
//   - Joining (joining.go). Another server in a place joins in a new epoch, whether a reload, a Sentinel or the list
//     of a starting process brings it in. First, enough of the other masters must record that epoch, so that a
//     process with the old list stops counting the server before it, and goes on with the others. Only then does the
//     new server get its marker, in quarantine, so that no quorum with it misses an earlier lock. A reload brings in
//     one server at a time, and only if a quorum of the remaining masters can carry it. Of several joins at the same
//     moment none is forgotten. A server that was replaced comes back only without its marker, and a process with an
//     old list does not bring it into a new set.
//   - A restarted server does not join anew if a living process knows it. That would stop the votes of all others for
//     a moment, and the marker that it gets at once tells everybody how long its quarantine is. A process takes a
//     join back if the server goes away before this process has read of the join in a marker. A run that never had a
//     marker has granted nothing, and others may mend the next run by the record before.
//   - Lost records (sighting.go). Masters that recorded a join may forget it. Let a, b and c be the masters. One
//     process is cut from a and stands still. Another one replaces c by d. Then b is flushed, and the other process
//     is cut from b. If the first one, which reaches b and c, gave b the old record, it would count b and c, and the
//     other one a and d. To the first one it looks as if a had died and b had lost its data, so it leaves b alone. A
//     lost record is written only by a process that knows of every join: it has read the records of a quorum of
//     others, or of all others, or it saw the master itself shortly before (Limits.SightingLasts). In return, a
//     joining server gets its marker only when enough others have kept the join for longer (Limits.Hold).
//   - What that costs. A master that forgot may have to wait for a dead master, or for an empty server at that one's
//     address. Of three masters, let one be dead and another one restart. It waits if no process saw it within
//     Limits.RestartDelay, or if it has data from before it joined. A sighting also needs one other master that
//     remembers. So if all masters lose power, of three or of five, and one does not come back, none votes before
//     that one or an empty server is there. No rule can avoid this, because it looks like the case of a, b and c.
//   - Another number of masters (resize.go). The change is on record like a join, and package members has its steps.
//     A change is decided only after every lock granted by the number before has ended. A server that was added does
//     not count before it votes, so one failure stops nothing meanwhile. A change begins only when all masters have
//     recorded the one before, so no master is left two changes behind: quorums whose numbers differ by two need not
//     meet. The operator asks by a reload (Want). A process follows the record, whatever its list is, and one that
//     starts asks for nothing. Operators who contradict each other endanger no lock: an addition that another process
//     withdraws is given up. But lists that name different servers for one place may stop all votes until all
//     name the one that is on record last. Lists without the place do not end that. model_test.go changes the number,
//     also by such operators.
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
//     (view.tellsAfter).
//
// # Eight exceptions
//
//   - Two masters or more forget a longer TTL than any before at the same time, and the process that gives them their
//     markers reaches them and each other that it needs, but none that recorded the TTL, and has not read it. It takes
//     the lack of a marker for an answer. Then they wait for the longest TTL that this process knows, or for
//     Limits.RestartDelay, and longer locks may be granted twice. A process reads a longer TTL within a second
//     (testdata/flush_unread.txt). If all masters forget and no process that has read the TTL lives, they wait for
//     Limits.RestartDelay only.
//   - All masters that have recorded a join forget at once, and no living process knows better. A process with an old
//     list may then count the server before that join again.
//   - All masters that a process knows of have forgotten, after the number has changed without its knowledge. If its
//     list is old, or it stood still for as long as two changes take, it may restore what it knows, or begin a new
//     set, and count fewer masters than others do.
//   - A set of one master. Nobody else knows its longer TTLs.
//   - All masters forgot, and got markers of two sets: the new one is not finished within Limits.RestartDelay
//     (testdata/flush_left.txt), or most of its masters are flushed before all processes know it, or another process
//     restores the old one on a master by what it read just before the last one forgot. The masters of the smaller
//     set are rejected until the operator flushes them.
//   - All masters restart twice without their latest data, as by a loss of power, and a process starts in between,
//     while a marker records the joins that it begins. If the masters then come back, and another process gives them
//     their former record, the two records name different servers. Neither process then counts them, until the
//     operator begins the set anew.
//   - SWAPDB, twice, with a database that the proxies' user may not SELECT or that can hold no locks, or while a
//     process of an earlier version mends markers, or within the moment between a lock and the check behind it.
//     Nothing tells then that the latest locks are missing.
//   - Servers are promoted. If masters lose their data in so many places that too few remember, they stay out until
//     the operator helps.
package roster
