// Package pubsub is what a client is told unasked: subscriptions, and CLIENT TRACKING.
// It sends the client the messages and invalidations that come from the lock masters.
// Messages are those that scripts on lock keys publish. Invalidations say that a lock
// key changed. The upstream is asked too, and what it publishes goes to the client past
// this package.
//
// A Client belongs to one session, and performs the commands of both families. It
// decides what the upstream is asked, what the masters are asked, and what is answered
// here while the upstream is away (alone.go). A Hub is what all clients share.
//
// While the masters are wanted, a Client has a listener. That asks a Source for
// channels, patterns and keys. It queues the pushes for the client in an outbox, within
// the limits, and writes them between two replies. A caller may rely on this:
//
//   - The client gets no message before the confirmation of its SUBSCRIBE, and none
//     after that of its UNSUBSCRIBE. For this, names are expected before the masters
//     are asked, and Confirmed is called with the client's write lock held that is held
//     for the confirmation too.
//   - A client that tracks keys gets one invalidation for a key that it has read and
//     that changed, and gets it behind the reply to its command (Begin, Performed,
//     Flushed). With NOLOOP it gets none for its own changes.
//   - A client never misses messages unnoticed. The session ends if messages may be
//     lost, if the client does not read, or if memory is short.
//
// # Who owns what
//
// The session's goroutine calls the Client, and Close at last. After Close nothing more
// is written. Any goroutine may call Listens and Swept; Confirmed and Speak are called
// by who holds the client's write lock, and Flushed also by the minder. A listener has
// one goroutine, which writes the outbox; Close waits for it. The Source calls back from
// its own goroutines, and is never blocked.
//
// Lock order: the client's write lock (conn.Writer), then the listener's mutex. The
// mutex is held for a few lines and never across I/O.
//
// The package imports upstream, route, command, conn, metrics and wire; of redlock its
// events and resp.
package pubsub
