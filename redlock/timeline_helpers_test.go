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

func (w *timeline) eval(script string, args ...string) Outcome {
	command := [][]byte{[]byte("EVAL"), []byte(script), []byte("1"), []byte(key)}
	for _, a := range args {
		command = append(command, []byte(a))
	}
	return w.locker.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: command})
}

func (w *timeline) acquireKey(name, value string) Outcome {
	return w.locker.Acquire(context.Background(), AcquireRequest{Key: []byte(name), Value: []byte(value), TTL: 10 * second})
}

func (w *timeline) get() Outcome { return w.locker.Get(context.Background(), 0, []byte(key)) }
