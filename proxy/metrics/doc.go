// Package metrics has all the Prometheus metrics that the proxy counts itself:
// of locks and masters (it implements redlock.Observer), of clients and the
// upstream, and of what an operator does (operations.go).
//
// It is told what happens, in plain data, and asks nobody: who the masters,
// rules and limits are comes with New, ShowSettings and ShowHazards. Labels are
// names from closed sets and the names of masters and rules; never a key, and
// never a value of a lock, which is a secret.
//
// Any number of goroutines may count. ShowSettings, ReloadApplied and
// ShowHazards are for one goroutine each. The package imports redlock, for what
// an Observer is told, and no room of the proxy.
package metrics
