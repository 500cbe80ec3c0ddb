package redlock

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Many clients at once, over real servers.

// Other clients' transactions on the same connections do not end a watch, and are not
// blocked for ever. Guards are not mixed up.
func TestWatchesOfManyClients(t *testing.T) {
	s := startLiveSet(t, 3)
	var clients sync.WaitGroup
	for n := range 20 {
		clients.Go(func() {
			key := fmt.Sprint("lock", n)
			for round := range 20 {
				wantReply(t, s.run([]string{key}, "EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'px', 60000)", "1", key, "me"), "+OK\r\n")
				w := s.watch(key)
				if w == nil {
					return
				}
				want := "*1\r\n:1\r\n"
				if round%2 == 1 {
					wantReply(t, s.run([]string{key}, "SET", key, "you", "PX", "60000"), "+OK\r\n")
					want = "*-1\r\n"
				}
				wantReply(t, s.deleteIfUnchanged(key, w), want)
			}
		})
	}
	clients.Wait()
}

// watch looks at a key as WATCH does.
func (s *liveSet) watch(key string) *Watch {
	w, o := s.Watch(s.t.Context(), 0, bytesOf([]string{key}))
	if o.Verdict == NoQuorum {
		s.t.Error(o.NoQuorumError())
	}
	return w
}

// deleteIfUnchanged is a transaction on a watched key.
func (s *liveSet) deleteIfUnchanged(key string, w *Watch) Outcome {
	return s.transaction(RunRequest{Keys: bytesOf([]string{key}), Watches: []*Watch{w}}, []string{"DEL", key})
}

// A key that other clients of this proxy make grow all the time is there, and a DEL deletes it.
func TestReleaseOfWhatGrows(t *testing.T) {
	s := startLiveSet(t, 5)
	for _, grow := range [][]string{{"RPUSH", "k", "x"}, {"APPEND", "k", "x"}, {"HINCRBY", "k", "f", "1"}, {"SADD", "k", ""}} {
		t.Run(grow[0], func(t *testing.T) {
			for round := range 10 {
				key := fmt.Sprint(grow[0], round)
				var grown atomic.Int64
				ctx, stop := context.WithCancel(t.Context())
				var clients sync.WaitGroup
				for range 4 {
					clients.Go(func() {
						for ctx.Err() == nil {
							command := slices.Clone(grow)
							command[1] = key
							if n := grown.Add(1); command[2] == "" {
								command[2] = fmt.Sprint(n)
							}
							s.run([]string{key}, command...)
						}
					})
				}
				for grown.Load() < 10 {
					runtime.Gosched()
				}
				if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
					t.Errorf("%v", o.Verdict)
				}
				stop()
				clients.Wait()
			}
		})
	}
}
