// Package quorum decides ballots: votes in, verdict out. It knows no time, no
// network, no goroutine and no Redis, so that every vector of votes can be tried.
//
// A ballot puts one question to N masters. What is known of each so far is an
// Answer. Count and Largest make a Tally of the answers, and each kind of
// question has one rule that makes a Verdict of the tally:
//
//   - Acquire: "did a quorum grant?", where what a lost ballot granted is taken
//     back.
//   - Agree: "does a quorum say so?", where nothing is taken back.
//   - Look: Agree, for a ballot that a release follows.
//   - Release: "was it mine, and does no quorum hold it now?"
//   - Told: one of the above, where a refusal is passed on as a master worded it.
//   - Exists: "is there a key, and what does a quorum hold under it?" Split and
//     Choose are for copies that differ.
//
// All of them are certain: a verdict other than Pending is the one that every
// completion of the missing votes would give. Exists and Look wait longer than
// that takes where their question needs it. Once no vote is pending, none of them
// returns Pending. A ballot ends in time by taking votes that did not come for
// Unknown.
//
// The package imports nothing of ours. Functions keep nothing of what they are
// given.
package quorum
