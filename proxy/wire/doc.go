// Package wire is the protocol as a client speaks it: what it sends, cut into
// commands within limits, and the replies that the proxy gives on its own
// account.
//
//   - A Decoder finds the commands in one client's bytes. Whatever Redis takes it
//     takes, and whatever Redis refuses it refuses with the same words, so the Raw
//     bytes of a Command can be forwarded as they are. It keeps its place between
//     two looks at an unfinished command, and allocates nothing for a usual one.
//     It belongs to one goroutine. The buffer is its owner's, and so is the bound
//     on how much of an unfinished command is kept.
//   - Limits bound what one command may be made of. A ProtocolError says which of
//     them was reached, and after it the connection is of no more use.
//   - IsWord and UntilNUL read arguments as Redis does, whose option words are C
//     strings.
//   - Every text that sessions send on their own account is in replies.go. Where
//     Redis has words for it they are Redis's.
//
// How RESP itself is read and written is in redlock/resp, which this package
// imports and nothing else of ours.
package wire
