// Package members is the record of who the masters of a set are. Each marker carries one, and package
// roster reads it. It depends on nothing else: no time, no master that is reached or not.
//
// A record lists a member for each place: the server that is the master there, and the epoch in which it joined.
// Every change is of one place: another server joins there, a server joins in the place after the last one, or the last
// one is removed. A place that was removed stays on record, without a server.
//
// Records only grow. For each place the latest epoch counts (Together). So two records that differ have a common
// successor, in any order. A record without a place is an earlier one, and the place was added in the later one (Fits).
package members
