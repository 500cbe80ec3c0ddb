package redlock

import (
	"context"
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

func (w *timeline) acquireKey(name, value string) Outcome {
	return w.locker.Acquire(context.Background(), AcquireRequest{Key: []byte(name), Value: []byte(value), TTL: 10 * second})
}

func (w *timeline) get() Outcome { return w.locker.Get(context.Background(), 0, []byte(key)) }
