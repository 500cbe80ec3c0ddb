// Package inspect asks the servers about themselves and judges whether locks are safe on
// them. The process asks at its start and at a reload. -check
// asks once and prints the answers. All of them judge by the same rules.
//
// # From question to judgement
//
// Ask asks all servers at once and returns Answers (facts.go): version, role, limits, persistence, what a
// server's Sentinels say, and of a master its marker (markers.go) and the commands that it denies the proxy
// (rights.go). Answers.Hazards judges them and the configuration (hazards.go). It asks no server, so tests of
// its rules need none. Refused picks the hazards with which the proxy must not run.
//
// A Monitor has the answers of a running process: those of the start, and then those of each reload
// (monitor.go). It asks a master again only if that has not answered. What a master tells later, package
// redlock hears with its connections and probes, and has the states of the masters. The Monitor neither asks
// for that again, nor judges it. It keeps the version and the databases that sessions show to clients. It
// teaches the router the commands that only this upstream knows. It shows the other hazards as metrics and
// logs each new one. It asks the upstream every 30 s, and at once when its connection ends, because nobody
// else does. Check does the work of -check (check.go).
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
// Answers and hazards belong to the caller, and the package does not change them later.
// Ask waits for all goroutines that it starts. Run uses the caller's goroutine, and starts one that waits
// for the end of the upstream's connection, and ends before Run. A Monitor has no mutex. The parts that
// other goroutines may read are atomic.
// The package knows no session.
package inspect
