// Package notify tells subscribers what happens on the lock masters: published
// messages and changed keys.
//
// A Hub has one connection to each master, from the first Subscriber that wants to
// hear something until a while after the last one. A Subscriber says what it wants to
// hear, and receives one Event at a time.
//
// The masters are asked for two feeds: all messages, and all changes of keys (feed.go). The Hub
// picks out what each Subscriber wants. So one more channel or key costs no question, and a master
// compares each message with one pattern of this process, however many are wanted.
//
// A Hub passes on a message once a quorum of masters has published it (heard.go), and
// the change of a key once a quorum has reported it (keychanges.go). If no quorum does
// so, it passes them on after a while, so that none is lost. If it listened to fewer
// than a quorum, subscribers receive an EventGap, and if a connection was lost, every
// key counts as changed (feed.go).
//
// The Hub's goroutines end with its context, and Close waits for them. Its mutex is
// held for bookkeeping only, and no subscriber is called with it.
//
// The package knows no locks, no votes and no configuration.
package notify
