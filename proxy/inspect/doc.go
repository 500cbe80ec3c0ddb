// Package inspect asks the servers about themselves and judges whether locks are safe on
// them. The process asks at its start, at a reload and regularly while it runs. -check
// asks once and prints the answers. All of them judge by the same rules.
//
// # From question to judgement
//
// Servers asks all servers at once and returns Facts (facts.go): version, role, limits,
// persistence, and the answers of a server's Sentinels (sentinels.go). Facts of a master
// also have its marker (markers.go) and the commands that it denies the proxy
// (rights.go). Hazards judges the configuration and the facts together (hazards.go).
// Hazards asks no server, so tests of its rules need none. Refused picks the hazards
// with which the proxy must not run.
//
// A Monitor repeats this for a running process (monitor.go). It keeps the version and the
// databases that sessions show to clients. It teaches the router the commands that only
// this upstream knows. It shows the hazards as metrics and logs each new one. Check does
// the work of -check (check.go, settings.go). It also knows whether the upstream can be used, and
// looks at once when the upstream goes away or comes back (upstream.go).
//
// # What a caller may rely on
//
// A server that does not answer is a fact and no error. It takes about 2 s at most,
// whatever it sends. Asking changes no server: to ask for rights, the package queues
// commands in a transaction and then discards it. Hazards, facts and the output of
// -check contain no password.
//
// The judgement is advice, and a reason to refuse a start. Only package redlock decides
// whether a master's vote counts, with every answer of the master. Nothing here makes a
// master vote.
//
// # Who owns what
//
// Facts and hazards belong to the caller, and the package does not change them later.
// Servers waits for all goroutines that it starts. A Monitor starts none: Run uses the
// caller's goroutine. A Monitor has no mutex. The parts that other goroutines may read
// are atomic.
// The package knows no session.
package inspect
