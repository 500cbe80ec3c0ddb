// Package embedded runs a small Redis server inside this process, for trying the proxy
// out. It is good enough for the locks of common libraries, whether these are strings,
// hashes, lists or sets.
//
// The server is miniredis plus the commands that clients and the proxy also need: INFO, CONFIG GET, some of
// CLIENT, COMMAND, and DUMP and RESTORE of every type. The payloads of DUMP are Redis's. The proxy itself answers what
// clients ask about themselves. CLIENT ID, KILL and TRACKING are unknown here. A caller may rely on three things: TTLs
// expire by themselves, each server has its own run id, and Close returns within a second. A server forgets
// everything when the process ends. No claim about safety may rely on it.
//
// A server listens on a free loopback port, so that redis-cli can connect to it. The
// caller that starts a server must close it.
package embedded
