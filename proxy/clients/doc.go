// Package clients knows the clients of this process, for CLIENT LIST and CLIENT KILL. The upstream
// knows only its own connections, and not every session has one.
//
// A Hub holds one Connection for each connected session. Its Entries are the same clients for
// REDLOCK CLIENTS and the page. Each Connection publishes what its session's goroutine knows
// (Published). Everything else is asked of the session, by methods that any goroutine may
// call. status.go makes one line of CLIENT LIST of both; filters.go parses the arguments.
// Both are free of I/O.
//
// # Two kinds of ids
//
// Clients see the ids of the proxy. The upstream has other ids for the sessions' connections
// to it. TRACKING REDIRECT and UNBLOCK name a client to the upstream, so the ids in them are
// replaced. A session opens a connection and learns its id there when its client asks for
// CLIENT ID.
//
// # Goroutines and locks
//
// The package starts no goroutine. The mutex of the Hub protects its map, and the mutex of a
// Connection protects what it has published. Both are held for a few lines, and never while a session is
// called. The methods of a Connection belong to its session's goroutine, unless they say
// otherwise.
package clients
