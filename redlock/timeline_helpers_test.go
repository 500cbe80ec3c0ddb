package redlock

import (
	"context"
	"time"
)

// What timelines in Go have in common.

func byDEL(l *Locker) Outcome {
	return l.Release(context.Background(), ReleaseRequest{Key: []byte(key)})
}

// hearAgain unmutes all links.
func (w *timeline) hearAgain() {
	for _, k := range w.links {
		k.Unmute()
	}
}

// wantTTLs checks the key's TTL on each master: -1 for ever, -2 absent.
func (w *timeline) wantTTLs(want ...time.Duration) {
	w.t.Helper()
	for i, m := range w.masters {
		if got := m.TTL(key); got != want[i] {
			w.t.Errorf("on master %d the key lives for %v, want %v", i+1, got, want[i])
		}
	}
}
