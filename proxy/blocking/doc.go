// Package blocking makes BLPOP and its like wait on lock keys. The masters run each command
// as a MULTI, in which these commands answer nil at once. So a command that gets nothing
// waits here, and is tried again when its keys have changed. It ends when it gets
// something, when its timeout passes or when its client goes.
//
// A process has one Room. The lock plane calls Run with the request and a function that asks
// the masters once. The Room hears of changed keys from its Tracker. If the masters announce
// no changes, or the command is unknown, it polls.
//
// Commands that take the same thing from one key stand in one line (room.go). A change wakes
// the first of them only. So a push to a list for which 1,000 clients wait costs two tries.
//
// # Goroutines and locks
//
// The package starts no goroutine. Run uses its caller's. The Tracker calls the Room with each
// change, and that call never blocks. No mutex is held during a try. The Room holds its
// mutex while it calls Untrack, so that mutex comes before those of the Tracker.
package blocking
