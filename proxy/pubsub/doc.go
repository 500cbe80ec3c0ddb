// Package pubsub performs subscriptions and CLIENT TRACKING. It sends the client what comes
// from the lock masters: messages that scripts on lock keys publish, and invalidations of
// lock keys. Messages and invalidations of the upstream reach the client without this
// package.
//
// A Client belongs to one session. It decides which commands go to the upstream, what the
// masters are asked for, and what the proxy answers itself while the upstream is
// unreachable (alone.go). A Hub has the state that all clients share.
//
// A Client that wants something from the masters has a listener. The listener asks a
// Source for channels, patterns and keys. It queues the pushes for the client in an outbox,
// within the limits, and writes them between two replies. A caller may rely on this:
//
//   - The client gets no message before the confirmation of its SUBSCRIBE, and none
//     after that of its UNSUBSCRIBE. So names are expected before the masters are asked,
//     and the client's write lock is held from the confirmation until Confirmed returns.
//   - A client that tracks keys gets one invalidation for a key that it has read and
//     that changed. It comes after the reply to the client's command (Begin, Performed). With NOLOOP the client gets none for its own changes.
//   - A client never misses messages unnoticed. The session ends if messages may be
//     lost, if the client does not read, or if memory is short.
//
// # Who owns what
//
// The session's goroutine calls the Client, and Close at last. After Close nothing more
// is written. Any goroutine may call Listens, Subscriptions and Swept. The caller of
// Confirmed and Speak holds the client's write lock. A
// listener has a task of the loop, which writes the outbox; Close waits for it. The Source calls
// back from its own goroutines, and the listener never blocks it.
//
// Lock order: the client's write lock (conn.Writer), then the listener's mutex. The
// mutex is held for a few lines and never across I/O.
package pubsub
