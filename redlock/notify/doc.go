// Package notify tells subscribers what happens on the lock masters: published messages
// and changed keys.
//
// A Hub has one connection to each master. It opens them for the first Subscriber that
// wants to hear something, and keeps them for a while after the last. A Subscriber says
// what it wants to hear, and receives one Event at a time.
//
// A Hub reports a message when a quorum of masters has published it (heard.go). It
// reports a change of a key when a quorum has reported it (keychanges.go). Without a
// quorum it reports them after a while, so that none is lost. If it listened to fewer
// than a quorum, subscribers receive an EventGap. If a connection was lost, every key
// counts as changed (subscription.go).
//
// The Hub's goroutines end with its context, and Close waits for them. Its mutex is held
// for bookkeeping only, and no subscriber is called with it.
//
// The package knows no locks, no votes and no configuration.
package notify
