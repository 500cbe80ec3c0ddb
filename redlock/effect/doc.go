// Package effect tells what a command did to its keys, and takes it back.
//
// A command that has no form of its own, such as a script, is examined: an
// Examination is the client's own bytes between two looks at the keys, all in one
// MULTI/EXEC. Its Result has the master's own reply and an Image of each key before
// and after. Compare says what happened between two images.
//
// The results of all masters are votes. A Rule says which of them are equal, and a
// quorum of equal votes wins and nothing less, also where the command deleted: by a
// deletion a fair lock is taken from its queue. A vote is the answer and the state of
// the keys afterwards, whatever changed. What an outvoted master's keys are to be is
// Due, and AppendUndo is the command that makes them so: exactly as they were, with
// their expiry, and only if nobody has touched them since.
//
// Everything here is a value or appends bytes. Nothing is sent, logged or waited for;
// who asks masters, and whether enough of a TTL is left, is the caller's business.
//
// The arrows lead to quorum, whose votes these are, to rdb, which reads what a key
// holds, and to resp.
package effect
