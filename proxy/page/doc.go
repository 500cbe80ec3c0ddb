// Package page shows people and programs the state of the proxy, over HTTP: /status.json once,
// /events as Server-Sent Events, /locks.json, and / as a page that reads them. It changes
// nothing.
//
// # Parts
//
// A Recorder remembers what nobody else keeps: the last events, since when a master has had
// its state, the last minute's votes and lock commands (record.go, minute.go). It hears of
// them as plain data. It is a redlock.Observer that passes everything on to the next one.
// contended.go says which keys are contended. status.go makes the Status, whose JSON names are
// an interface: fields may be added, and none is renamed or removed. A Page serves it
// (page.go). locks.go lists locks that are held.
//
// # What a caller may rely on
//
// Recording costs no allocation for each vote or command, and all memory is bounded. A Page
// makes a Status only if somebody looks. /events has a bounded number of listeners. The
// masters are asked for locks only on a request for /locks.json, one question at a time. Keys
// of locks may be shown, a lock's value never is.
//
// # Who owns what
//
// The package starts no goroutine: Run uses the caller's. The HTTP server of the caller owns
// the goroutines of requests. Those of /events end soon after Run has ended. The mutexes of a
// Recorder and a Page are never held together, nor during a call of a Source.
package page
