// Package endpoint connects to one Redis server: by its address, over TLS, or through
// the Sentinels that know which server is the master now.
//
// Parse reads a server's URL, together with the password and the files that its options
// name. Dial opens a connection and sends nothing on it. Options are settings for
// go-redis, for questions off the hot path. The replies to those are checked before
// go-redis reads them (checkedreplies.go). Explain tells an operator what to do about a
// server that cannot be used. KillScripts ends scripts that run for too long. Same and
// SameEntry compare two endpoints for a reload.
//
// # Secrets
//
// Errors never quote a URL or a value, because part of a password may have slipped into
// the wrong place. A Secret and an Endpoint print without the password, with every verb
// and in every encoding.
//
// # TLS files
//
// A TLS reads its files when it is opened, which a reload of the configuration does. It
// reads them again every 30 s while handshakes use it. If the new files are unusable,
// the old ones stay in use, and Problem says why.
//
// # Sentinels
//
// All Sentinels are asked at once, within half a second. The answer with the latest
// configuration counts as soon as the others cannot outvote it. The connection is used
// only if the server's own reply to ROLE confirms it.
//
// go-redis's failover dialer promises less. It stays with the Sentinel that answered
// first, so a Sentinel that was cut off keeps leading to the old master. It asks under a
// lock, where other dials cannot give up. And it keeps a subscription and a goroutine,
// which each reload would have to end.
//
// # Who owns what
//
// An Endpoint is a value and never changes. Its copies share the Sentinels' last answer
// and the TLS, and any goroutine may use them. No goroutine of this package outlives a
// call.
package endpoint
