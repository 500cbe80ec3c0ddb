// Package quorum decides ballots: votes in, verdict out. It knows no time, no
// network, no goroutine and no Redis, so tests can try every combination of votes.
//
// A ballot puts one question to N masters. An Answer is what is known of one master
// so far. Count and Largest turn the answers into a Tally. Each kind of question has
// one rule that turns the tally into a Verdict:
//
//   - Acquire: did a quorum grant? The grants of a lost ballot are undone.
//   - Agree: does a quorum say so? Nothing is undone.
//   - Look: Agree, for a ballot that a release follows.
//   - Release: was the lock this client's, and does no quorum hold it now?
//   - Told: one of the above, when a master's own refusal is passed on to the client.
//   - Exists: is there a key, and what does a quorum hold under it? Split
//     is for copies that differ.
//
// Verdicts are certain. A verdict other than Pending is the one that every completion
// of the missing votes would give. Exists and Look may wait longer than certainty
// needs, for reasons given there. Once no vote is pending, no rule returns Pending. A
// ballot whose time is over counts the missing votes as Unknown.
//
// The package imports nothing of this module. Functions keep nothing that they are
// given.
package quorum
