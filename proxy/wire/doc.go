// Package wire implements the protocol between a client and the proxy. It cuts a
// client's bytes into commands, within limits, and holds the texts of the replies
// that the proxy itself gives.
//
//   - A Decoder finds the commands in one client's bytes. It allocates nothing for the
//     usual commands. It belongs to one goroutine. The caller owns the buffer and bounds
//     its size.
//   - Limits bound the parts of one command. A ProtocolError says which limit was
//     exceeded. After it the connection must be closed.
//   - IsWord and UntilNUL read arguments as Redis does. Redis treats option words as
//     C strings.
//   - hello.go parses HELLO and the arguments that set a connection's state. info.go has the
//     texts of INFO.
//   - replies.go holds every text that sessions send themselves. If Redis has a text
//     for the case, it is Redis's.
package wire
