// Package page shows people and programs the state of the proxy, over HTTP: /status.json once,
// /events as Server-Sent Events, /locks.json, and / as a page that reads them. It changes
// nothing.
//
// # Parts
//
// status.go makes the Status of what package events remembers. Its JSON names are an interface: fields
// may be added, and none is renamed or removed. contended.go says who waits. A Page serves it
// (page.go). locks.go lists locks that are held.
//
// # What a caller may rely on
//
// A Page makes a Status only if somebody looks. /events has a bounded number of listeners. The
// masters are asked for locks only on a request for /locks.json, one question at a time. Keys
// of locks may be shown, a lock's value never is.
//
// # Who owns what
//
// The package starts no goroutine. The HTTP server of the caller owns the goroutines of requests. Those
// of /events end soon after Close.
package page
