// Package resp reads, writes and compares whole RESP2 and RESP3 values. It serves the
// masters' replies to lock commands and the upstream's replies to everything else.
//
// A reply is the bytes of one whole top-level value, as the server sent them. It stays
// in that form. The functions here look into it without decoding it first. They return
// slices of it unless they say otherwise.
//
//   - Scanner finds where values end in a stream that may be cut anywhere. It needs no
//     memory for what it scans. Any other bytes are a MalformedError.
//   - Reader collects whole replies from a connection into one buffer.
//   - Elements, ParseBulk, ParseInteger and the functions about errors read a reply.
//     CannotServe tells a master's answer from a master that is unable to answer.
//   - Equivalent compares two masters' replies to one command. It ignores differences
//     that masters in the same state may show.
//   - AppendCommand and its parts write.
//   - GlobMatch matches what Redis calls a pattern.
//
// The package imports nothing of this module and starts no goroutine. Its only state is
// in a Scanner and a Reader, each of which belongs to one goroutine.
package resp
