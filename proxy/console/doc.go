// Package console answers REDLOCK, the command for operators: which masters vote, which
// rules there are, and so on. REDLOCK HELP lists the subcommands. Package route has
// their arity and their keys, package config says who may send them. The package shows people and
// programs the same over HTTP: /status.json once, /events as Server-Sent Events, /locks.json, and / as a
// page that reads them.
//
// # What a caller may rely on
//
// Do appends exactly one reply. It waits for a master only where the subcommand says so,
// and then for a bounded time. It keeps no argument after it has returned. Any number of
// goroutines may call it. The package starts no goroutine and has no mutex. One caller
// at a time lists locks, by LOCKS or by Held.
//
// The value of a lock is a secret. No reply contains one.
//
// # Replies
//
// A list has one map for each item: a map in RESP3, an array of names and values in RESP2,
// as Redis replies to XINFO. The names of fields are stable, and later versions only add
// some. Times are texts in UTC such as 2026-11-21T05:10:00Z. A null means unknown or none.
//
// # The page
//
// pagestatus.go makes /status.json of what package events remembers. Its names are an interface: fields may
// be added, and none is renamed or removed. A Page serves it (page.go), and changes nothing. It makes the
// state only if somebody looks. /events has a bounded number of listeners. pagelocks.go asks the masters for
// locks only on a request for /locks.json, one question at a time. The HTTP server of the caller owns the
// goroutines of requests. Those of /events end soon after Close.
package console
