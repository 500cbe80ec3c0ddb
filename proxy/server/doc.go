// Package server accepts clients, has package handler serve them, and keeps and inspects their sessions.
//
// Serve may be called for several listeners. A client beyond limits.clients gets an error
// and is closed. Every other client gets a session, which runs on the loop of its Env or on a
// goroutine of its own. One more goroutine, the sweep, makes each session
// check for what no other goroutine notices: an idle client, unread replies, a stuck upstream. So no session needs
// a timer while all is well.
//
// Shutdown stops accepting and lets sessions finish what they have read. StopAccepting does the
// first part alone, so that clients can leave by themselves before the second. When its context
// ends, it cuts off the remaining sessions. It waits for all goroutines of the package.
//
// At the limit of open files no client can be accepted. The log says so once a minute. HTTPErrors
// gives the HTTP server of the admin address, which meets the same limit, a log with the same pause.
//
// The server's mutex protects its map of listeners, and is never held while a session is called. The service has
// the sessions.
package server
