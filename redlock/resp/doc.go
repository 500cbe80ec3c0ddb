// Package resp reads, writes and compares whole RESP2 and RESP3 values. Both
// planes use it: what masters answer to locks, and what the upstream answers to
// everything else.
//
// A reply is the bytes of one whole top-level value, as the server sent them.
// It stays in that form: the functions here look into it without decoding it
// first, and what they return are slices of it unless they say otherwise.
//
//   - Scanner finds where values end in a stream that may be cut anywhere. It
//     needs no memory for what it scans, and takes any bytes: a server that sends
//     no RESP gets a MalformedError.
//   - Reader collects whole replies from a connection into one buffer.
//   - Elements, ParseBulk, ParseInteger and the functions about errors read a
//     reply. CannotServe draws the line between a master's answer and a master
//     that is not able to answer.
//   - Equivalent compares two masters' replies to one command, and forgives what
//     may differ between masters of the same state.
//   - AppendCommand and its parts write.
//
// The package imports nothing of ours, starts no goroutine and has no state but
// that of a Scanner and a Reader, each of which belongs to one goroutine.
package resp
