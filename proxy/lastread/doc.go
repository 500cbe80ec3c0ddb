// Package lastread remembers what a client has just read of a lock, so that the lock plane
// knows which answer tells the client that it has won.
//
// Each session owns one Memory, which is not safe for concurrent use. The package starts no
// goroutine.
package lastread
