// Package auth knows which user each client is. It judges AUTH by the users of the
// configuration, or lets the upstream judge it, if that has the users (upstream.go). It knows
// no command but AUTH: package config says what a user may send.
//
// A Service makes a Client for each session. The handler asks the Client before each command
// (Current, Confirm), and passes on what the session tells it: Arrived, Login, Opened and
// Rejected.
//
// # While the upstream cannot be reached
//
// Locks need no upstream, but their clients must log in. So the Service remembers the logins
// that the upstream has accepted (accepted.go), and the proxy vouches for a client that sends
// one of them, for auth_cache at most.
//
// # What a caller may rely on
//
// The package starts no goroutine. The methods of a Client belong to its session's goroutine,
// except Account and MustLogIn. The mutex of the accepted logins is held for a few lines.
//
// Passwords are never logged, nor is a name that belongs to no user: it may be a password.
package auth
