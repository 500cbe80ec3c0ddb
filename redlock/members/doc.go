// Package members is the record of who the masters of a set are. Each marker carries one, and package
// roster reads it. It depends on nothing else: no time, no master that is reached or not.
//
// A record lists a member for each place: the server that is the master there, and how far the
// addition or removal of the place has come (Stage). A place that was never added or removed has no
// stage in the text. So a set whose number of masters never changed has the text of earlier versions,
// and those cannot read any other.
//
// The rules:
//
//   - Records only grow. For each place the member that joined last and the latest stage count
//     (Together). So two records that differ have a common successor, in any order.
//   - Places are added and removed at the end, and stay on record. So a record without a place is an
//     earlier one, and the place has a stage in the later one (Fits).
//   - A change is proposed, kept on record, and decided. Until it is decided the number before counts
//     (Counting). Just before that nobody counts votes (IsFrozen).
//   - Each step follows from the record alone (Next). A process may take it when a quorum of the
//     masters that count has recorded exactly this record: an exact quorum. Package roster says what
//     else a step waits for. A quorum of N masters and one of N+1 have a master in common. So of two
//     such quorums one record comes after the other. But one process may take the step of the earlier
//     record, and another process that of the later one.
//   - So a step is contradicted only while it is proposed. A place that is entering or exiting may be
//     decided elsewhere, and goes on.
//   - One place changes at a time. If two changes meet, the proposed addition is dropped. An addition
//     is withdrawn by its round in the first place (Withdraw).
//
// Two rules rely on time. An addition is dropped after a hold: a process that has taken it a step
// further, and was cut off all that time, must not come back in the moment of the drop. And a removal
// is taken back if a later master counts: a process that has taken it back must not be cut off until
// the later master has been removed, and the earlier one, too.
package members
