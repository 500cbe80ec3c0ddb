// Package notify tells subscribers what happens on the lock masters: published
// messages and changed keys.
//
// A Hub has one connection to each master, from the first Subscriber that wants to
// hear something until a while after the last one. A Subscriber says what it wants to
// hear, and receives one Event at a time.
//
// The masters are asked for one pattern, and the Hub compares with those of the subscribers: a
// master compares a message with each pattern of all clients, and no lock is voted for meanwhile.
//
// A Hub passes on a message once a quorum of masters has published it (heard.go), and
// the change of a key once a quorum has reported it (keychanges.go). If no quorum does
// so, it passes them on after a while, so that none is lost. If it listened to fewer
// than a quorum, subscribers receive an EventGap, and if a connection was lost, every
// key counts as changed (subscription.go).
//
// The Hub's goroutines end with its context, and Close waits for them. Its mutex is
// held for bookkeeping only, and no subscriber is called with it.
//
// The package knows no locks, no votes and no configuration.
package notify
