// Package rdb reads and writes DUMP payloads: values in Redis's RDB encoding.
//
// Masters store the same lock in different bytes. Versions and settings choose the
// encoding, and each master keeps sets and hashes in an order of its own. Same tells
// whether two payloads have the same content nevertheless. Read and StringValue decode
// a payload, and Dump encodes one.
//
// Streams, types of modules and types of newer servers are not decoded. Two such
// payloads are the same only if their bytes are.
//
// Payloads come from servers and may hold any bytes. Nothing here panics on them, and
// memory grows only with the bytes that are there. Results may share the payload's
// memory. (The decoder github.com/hdt3213/rdb allocates by a length before it has seen
// the bytes, so 22 bytes can end the process. It also writes to the standard output.)
//
// The package is a leaf: it imports nothing of this module.
package rdb
