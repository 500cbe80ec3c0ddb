package faults

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestLocksThatEndALittleLater is ShedLock's own test of its locks: four clients take turns with a lock,
// and unlock it so that it ends 5 ms after it was taken. They wait for an answer as long as Jedis does, and
// no answer may be an error.
func TestLocksThatEndALittleLater(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{MasterTimeout: 500 * time.Millisecond})
	const clients, turns, atLeast, ttl = 4, 50, 5 * time.Millisecond, 5 * time.Minute
	register := &history.Register{Key: "lock:job"}
	var all sync.WaitGroup
	for id := range clients {
		client := redis.NewClient(&redis.Options{Addr: c.Proxy.Addr(), MaxRetries: -1, ReadTimeout: 2 * time.Second})
		t.Cleanup(func() { client.Close() })
		all.Go(func() {
			for turn := 0; turn < turns; {
				token, began := fmt.Sprintf("ADDED:%d@host:%d", turn, id), time.Now()
				taken, err := rig.Acquire(t.Context(), client, "lock:job", token, ttl)
				if err != nil {
					t.Errorf("taking it: %v", err)
					return
				}
				if !taken {
					continue
				}
				register.Visit(id, began.Add(ttl))
				if keep := (atLeast - time.Since(began)).Milliseconds(); keep > 0 {
					err = client.Do(t.Context(), "SET", "lock:job", token, "XX", "PX", keep).Err()
				} else {
					err = client.Del(t.Context(), "lock:job").Err()
				}
				if err != nil && !errors.Is(err, redis.Nil) {
					t.Errorf("unlocking it: %v", err)
					return
				}
				turn++
			}
		})
	}
	all.Wait()
	register.Check(t, clients*turns)
}
