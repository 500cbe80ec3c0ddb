// Package conformance tests that libraries work unmodified. Lock libraries of
// eight languages go through every scenario (conformance_test.go), over Redis, over
// Valkey and over TLS.
//
// A proxy that learns finds each library's rule (learn_test.go), and none in traffic without
// locks (unlocked_test.go). With a wait in the rule, libraries that know nothing of it get
// their locks in order. With renew and on_disconnect, their locks last as long as their
// connections (stories_test.go). With a fencing token, a holder that was paused does no harm
// (fencing_test.go).
//
// redis-py's own tests of CLIENT run through the proxy and on a plain Redis, with the same
// results (redispy_own_test.go).
//
// A new library is an entry in libraries.txt and a program in clients/. client_test.go
// describes the program's answers. The scenarios are the lines of stories/scenarios.txt, and
// story_test.go says what they mean. table_test.go writes the table in the suite's README.
// stories/handwritten.txt has lock code that applications write by hand.
package conformance
