// Package metrics has all Prometheus metrics of the proxy: for locks and masters, for
// clients and the upstream, and for the work of an operator (operations.go).
//
// Other packages report events as plain data. Metrics implements redlock.Observer for
// the events of locks and masters. New, ShowSettings and ShowHazards give the names of
// masters, rules and limits. Some metrics have no events, so their values are read when
// the metrics are (Readings).
//
// Events that clients can cause at will are logged through a Throttle. It counts the
// lines that it leaves out.
//
// Any number of goroutines may count. Only one goroutine at a time may call ShowSettings
// or ReloadApplied.
package metrics
