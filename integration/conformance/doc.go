// Package conformance tests that libraries work unmodified. Lock libraries of
// eight languages go through every scenario (conformance_test.go), over Redis and over
// Valkey.
//
// A proxy that learns finds each library's rule (learn_test.go), and none in traffic without locks (unlocked_test.go). With a wait in the rule, libraries that know nothing of it get their locks in order
// (waits_test.go). With renew and on_disconnect, their locks last as long as their
// connections (leases_test.go). With a fencing token, a holder that was paused does no harm
// (fencing_test.go).
//
// redis-py's own tests of CLIENT run through the proxy and on a plain Redis, with the same
// results (redispy_own_test.go).
//
// A new library is an entry in the file of its language and a program in clients/.
// libraries_test.go describes the entry, client_test.go the program's answers, and
// scenarios_test.go the scenarios. table_test.go writes the table in the suite's README.
// handwritten_test.go and patterns_test.go have lock code that applications write by hand.
package conformance
