// Package pubsub sends a client what comes from the lock masters: messages that scripts on lock keys
// publish, and invalidations of lock keys. Messages and invalidations of the upstream reach the
// client without this package. It knows no command: package handler performs SUBSCRIBE and CLIENT
// TRACKING, and says here what the client wants.
//
// A client that wants something from the masters has a Listener. The Listener asks a
// Source for channels, patterns and keys. What the Source reports is written to the client at once, between two
// replies. Tracking has what a client has said by CLIENT TRACKING. A caller may rely on this:
//
//   - The client gets no message before the confirmation of its SUBSCRIBE, and none
//     after that of its UNSUBSCRIBE: the client's write lock is held from the confirmation until Confirm
//     returns (session.Names), and while a message is compared with the names and written.
//   - A client that tracks keys gets one invalidation for a key that it has read and
//     that changed. It comes after the reply to the client's command (Listener.Begin and Replied). With
//     NOLOOP the client gets none for its own changes.
//   - A client never misses messages unnoticed. The session ends if messages may be
//     lost, if the client does not read, or if memory is short.
//
// # Who owns what
//
// The session's goroutine calls the Listener and its Tracking, and Close at last. After Close nothing more
// is written. Any goroutine may call the methods of the Names, GiveBack and Missed. The caller of Confirm and
// Speak holds the client's write lock. The Source calls back from its own goroutines, and the Listener never
// blocks it. Self-change checks ask the masters on a goroutine, for which Close waits.
//
// Lock order: the client's write lock (upstream.Writer), then the mutex of the Names, or those of the Source.
// They are held for a few lines and never across I/O or a call of the session's End, which logs (Listener.unlock).
package pubsub
