// Package effect finds out what a command did to its keys, and undoes it.
//
// The proxy does not know what a script means, so it examines it. An Examination
// runs the client's own bytes between two looks at the keys, all in one MULTI/EXEC.
// Its Result holds the master's reply and an Image of each key before and after.
// Compare says what happened between two images.
//
// The results of all masters are votes. A vote is the reply together with the state
// of the keys afterwards. A Rule says which votes are equal. A quorum of equal votes
// wins, and nothing less does. Deletions are no exception: a fair lock is acquired by
// deleting an entry of its queue.
//
// Masters that were outvoted are corrected. Due says what their keys should be, and
// AppendUndo encodes the command that makes them so: exactly as before, with their
// expiry, and only if nobody has touched them since.
//
// Everything here is a value or appends bytes. Nothing is sent, logged or waited for.
// The caller asks the masters and checks that enough of a TTL is left.
package effect
