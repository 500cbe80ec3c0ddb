// Package notify tells subscribers what happens on lock masters: messages that were
// published, and keys that have changed.
//
// A Hub has one connection to each master, opened when somebody wants to hear and kept
// for a while after the last. A Subscriber says what it wants to hear of, and hears of it
// one Event at a time.
//
// A message counts once a quorum of masters has published it (heard.go), a change once a
// quorum has told of it (keychanges.go). What a quorum did not tell of is told after a
// while, so that none is lost. Where fewer than a quorum were listened to, subscribers
// hear of a gap, and a connection that was lost makes every key a changed one
// (subscription.go).
//
// The Hub's goroutines end with its context; Close waits for them. Its mutex is held for
// bookkeeping only: a subscriber is called without it.
//
// The package knows no locks, no votes and no configuration. It uses redlock/resp,
// redlock/quorum and redlock/stream.
package notify
