// Package operation tests that an operator's steps go well under load: reloads, rolling
// restarts, migration from one Redis, Sentinel, users and their rights, TLS, sockets,
// the rights that the handbook gives the proxy, two versions of it together, and a crowd of
// idle clients. testdata/scripts has steps as text.
package operation
