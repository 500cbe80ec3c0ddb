// Package embedded is a toy Redis inside this process, for trying the proxy out: real
// enough for the locks of common libraries, be they strings, hashes, lists or sets.
//
// It is miniredis, with what clients and the proxy ask beyond that: HELLO, INFO,
// CONFIG GET, CLIENT, COMMAND, and DUMP and RESTORE of every type with payloads that
// a real Redis takes. A caller may rely on TTLs that pass by themselves, on a run id
// of its own for each server, and on Close, which returns within a second. It
// forgets everything when the process ends, and no safety result counts on it.
//
// A server listens on a free loopback port, so that redis-cli can look into it.
// Whoever starts one closes it. Of this module the package imports only redlock/rdb.
package embedded
