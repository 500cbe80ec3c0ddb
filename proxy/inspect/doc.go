// Package inspect asks the servers what they are and judges whether locks are safe
// on them. The process asks at its start, at a reload and from time to time while it
// runs; -check asks once and prints the answers. All of them judge alike.
//
// # From question to judgement
//
// Servers asks every server at once and returns Facts (facts.go): version, role,
// limits, what it keeps on disk, what the Sentinels of a server say (sentinels.go),
// and of a master its marker (markers.go) and the commands that it forbids the proxy
// (rights.go). Hazards judges the configuration and the facts together (hazards.go).
// It asks nobody, so all of its rules are tested without a server. Refused picks the
// hazards that the proxy must not run with.
//
// A Survey does this again and again for a running process (survey.go). It keeps
// what sessions show to clients, teaches the router the commands that only this
// upstream knows, shows the hazards as metrics and logs each new one. Check is
// -check (check.go, settings.go).
//
// # What a caller may rely on
//
// A server that does not answer is a fact and no error, and costs about 2 s at most,
// whatever it sends. Asking changes no server: rights are asked for by queueing
// commands in a transaction that is then discarded. Hazards, facts and what -check
// prints have no password in them.
//
// The judgement is advice, and the reason to refuse a start. Whether a master's vote
// counts is decided in package redlock alone, with every answer of the master;
// nothing here makes one vote.
//
// # Who owns what
//
// Facts and hazards belong to whoever asked for them and are not changed later.
// Servers waits for all goroutines that it starts. A Survey starts none of its own:
// Run is the caller's goroutine. It holds no lock; what other goroutines may read of
// it is atomic.
//
// The package imports config, route, endpoint, embedded (for its version), command,
// metrics, and redlock for reading markers. It knows no session.
package inspect
