package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestHistoryUnderFaults: while masters hang and connections break, never
// more than a minority at a time, what all clients of two proxies saw must be
// explainable by one lock on one server.
func TestHistoryUnderFaults(t *testing.T) {
	c := startCluster(t, proxyOptions{masterTimeout: 200 * time.Millisecond})
	second := c.addProxy(t, proxyOptions{masterTimeout: 200 * time.Millisecond})
	clients := []*redis.Client{c.proxy.client(t), second.client(t)}

	ctx, stop := context.WithTimeout(t.Context(), 8*time.Second)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { breakMasters(ctx, c) })
	start := time.Now()
	histories := make([][]lockCall, 8)
	for i := range histories {
		wg.Go(func() { histories[i] = useLock(ctx, i, clients[i%len(clients)], start) })
	}
	wg.Wait()

	history := slices.Concat(histories...)
	count := map[string]int{}
	for _, call := range history {
		count[fmt.Sprintf("%s %s", call.asked, call.answer)]++
	}
	t.Logf("history: %v", count)
	if count["acquire yes"] < 20 {
		t.Errorf("only %d acquires were granted: the locks did not go on", count["acquire yes"])
	}
	for _, v := range checkHistory(start, history) {
		t.Error(v.what)
	}
	defer func() {
		for _, call := range history {
			for _, master := range c.masters {
				if left, ok := master.value(t, "lock:history"); ok && call.token == left {
					t.Logf("%s still holds what this made: %s", master.name, call)
				}
			}
		}
	}()
	c.waitGone(t, "lock:history")
}

// useLock takes and gives back the lock until ctx ends, and then gives back
// what it holds.
func useLock(ctx context.Context, id int, client *redis.Client, start time.Time) []lockCall {
	const lease = 10 * time.Minute // longer than the test: nothing is excused by a lease that has run out
	var history []lockCall
	do := func(what lockQuestion, token string, f func(ctx context.Context) (bool, error)) lockAnswer {
		limited, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		call := lockCall{client: id, key: "lock:history", token: token, asked: what, ttl: lease, begin: time.Since(start)}
		call.answer = answerOf(f(limited))
		call.end = time.Since(start)
		history = append(history, call)
		return call.answer
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%d-turn-%010d", id, turn)
		taken := do(askAcquire, token, func(ctx context.Context) (bool, error) {
			return acquire(ctx, client, "lock:history", token, lease)
		})
		if taken != yes {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
			continue
		}
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			given := do(askRelease, token, func(ctx context.Context) (bool, error) {
				return release(ctx, client, "lock:history", token)
			})
			if given != unsure {
				break
			}
		}
	}
	return history
}

// breakMasters hurts two masters at a time until ctx ends, and leaves them well.
func breakMasters(ctx context.Context, c *cluster) {
	for ctx.Err() == nil {
		order := rand.Perm(masterCount)
		paused, cut := c.masters[order[0]], c.masters[order[1]]
		paused.pause()
		for range 4 {
			limited, cancel := context.WithTimeout(context.Background(), time.Second)
			cut.direct.Do(limited, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			cancel()
			pause(ctx, time.Duration(20+rand.IntN(100))*time.Millisecond)
		}
		paused.resume()
		pause(ctx, time.Duration(rand.IntN(100))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
