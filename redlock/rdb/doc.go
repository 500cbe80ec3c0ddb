// Package rdb reads and writes DUMP payloads: what SET, HSET and the rest stored, in
// Redis's RDB encoding.
//
// Masters store the same lock in different bytes. Versions and settings choose the
// encoding, and what has no order of its own stands in another order on each. Same
// tells whether two payloads hold the same nevertheless. Read and StringValue show
// what one holds, and Dump makes one.
//
// Streams, modules' types and what a newer server has are not read. They are their
// own bytes: two such payloads are the same only if the bytes are.
//
// Payloads come from servers, so any bytes may be in one. Nothing here panics on
// them, and nothing is allocated that the payload does not pay for. Whatever is
// returned may share the payload's memory. (The decoder in github.com/hdt3213/rdb
// allocates by the lengths it reads before it has seen the bytes, so a value of 22
// bytes ends the process; it also writes to the standard output.)
//
// The package is a leaf: it imports nothing of this module.
package rdb
