// Package wakeups tests that a release wakes the clients that wait for the lock, whichever
// proxy each of them uses. The wake-up is a message, an element in a signal list, or an
// invalidation. The tests are scripts in testdata/scripts.
package wakeups
