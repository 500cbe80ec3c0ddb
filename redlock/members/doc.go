// Package members is the record of who the masters of a set are. Each marker carries one, and
// package roster reads it. It depends on nothing else: no time, no master that is reached or not.
//
// A record lists a member for each place: the server that is the master there, and how far the
// addition or removal of the place has come (Stage). A place that was never added or removed has
// no stage in the text. So a set whose number of masters never changed has the text of earlier
// versions, and those cannot read any other.
package members
