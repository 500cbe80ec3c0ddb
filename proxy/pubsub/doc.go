// Package pubsub tells one client what the lock masters tell: messages that scripts on
// lock keys published, and lock keys that were changed. What the upstream publishes
// goes to the client past it.
//
// A Listener serves one session, its Host. It asks a Source for channels, patterns
// and keys, keeps what comes as mail within the host's limits, and writes it to the
// client between two replies. A caller may rely on this:
//
//   - No message comes before the confirmation of its SUBSCRIBE, nor after that of
//     its UNSUBSCRIBE. Expect comes before the masters are asked, and Confirm is
//     called with the client's writing side held, together with the bytes that
//     confirm.
//   - A client that tracks keys is told once of each change of a key that it has
//     read, behind the reply to its command (Begin, Answered, Replied), and with
//     NOLOOP not of its own changes.
//   - Nothing is missed in silence. Where messages may have been, where the client
//     does not read, or where there is no memory, the host's session ends.
//
// # Who owns what
//
// The session calls Listen, and Close, which returns when nothing is written any
// more. A Listener has one goroutine, which writes the mail; Close waits for it. The
// Source calls back from goroutines of its own and is never held up.
//
// Locks: the client's writing side (conn.Writer) before the listener's mutex, which
// is held for a few lines and never across I/O.
//
// The package imports wire and conn, and redlock for its events.
package pubsub
