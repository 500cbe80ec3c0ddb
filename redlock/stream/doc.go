// Package stream holds connections to lock masters: how they begin, when they are
// dialled again, and what a panic on one of them costs.
//
// Connect opens a connection: it dials, authenticates, and asks the server who it
// is, or for RESP3 where the connection is for what the server tells by itself. A
// Backoff paces the dialling of one server. Contain keeps a defect in one goroutine
// from ending the process, for other clients hold locks through it.
//
// The package knows no markers, no votes and no configuration. It uses
// redlock/resp.
package stream
