package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestHistoryUnderFaults: masters hang and connections break, at most a minority at a time.
// The answers to all clients of two proxies must be possible with one lock on one server.
func TestHistoryUnderFaults(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{MasterTimeout: 200 * time.Millisecond})
	second := c.AddProxy(t, rig.Options{MasterTimeout: 200 * time.Millisecond})
	clients := []*redis.Client{c.Proxy.Client(t), second.Client(t)}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	seed := layer.Seed(t)
	var broken, granted atomic.Int64
	wg.Go(func() { breakMasters(ctx, c, rand.New(rand.NewPCG(seed, 0)), &broken) })
	start := time.Now()
	histories := make([][]history.Call, 8)
	for i := range histories {
		wg.Go(func() {
			histories[i] = useLock(ctx, i, clients[i%len(clients)], start, rand.New(rand.NewPCG(seed, uint64(i+1))), &granted)
		})
	}
	goesOn := rig.Eventually(func() error {
		if broken.Load() < 15 || granted.Load() < 300 {
			return fmt.Errorf("masters broke %d times, and %d acquires were granted", broken.Load(), granted.Load())
		}
		return nil
	})
	stop()
	wg.Wait()
	if goesOn != nil {
		t.Errorf("the locks did not go on: %v", goesOn)
	}

	calls := slices.Concat(histories...)
	count := map[string]int{}
	for _, call := range calls {
		count[fmt.Sprintf("%s %s", call.Asked, call.Answer)]++
	}
	t.Logf("history: %v", count)
	for _, v := range history.Check(start, calls) {
		t.Error(v.What)
	}
	defer func() {
		for _, call := range calls {
			for _, master := range c.Masters {
				if left, ok := master.Value(t, "lock:history"); ok && call.Token == left {
					t.Logf("%s still holds what this made: %s", master.Name, call)
				}
			}
		}
	}()
	c.WaitGone(t, "lock:history")
}

// useLock acquires and releases the lock until ctx ends. Then it releases what it still
// holds.
func useLock(ctx context.Context, id int, client *redis.Client, start time.Time, random *rand.Rand, granted *atomic.Int64) []history.Call {
	const lease = 10 * time.Minute // longer than the test, so that no lease runs out and excuses an overlap
	var calls []history.Call
	do := func(what history.Question, token string, f func(ctx context.Context) (bool, error)) history.Answer {
		limited, cancel := context.WithTimeout(context.Background(), rig.Patience)
		defer cancel()
		call := history.Call{Client: id, Key: "lock:history", Token: token, Asked: what, TTL: lease, Begin: time.Since(start)}
		call.Answer = history.AnswerOf(f(limited))
		call.End = time.Since(start)
		calls = append(calls, call)
		return call.Answer
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%d-turn-%010d", id, turn)
		taken := do(history.AskAcquire, token, func(ctx context.Context) (bool, error) {
			return rig.Acquire(ctx, client, "lock:history", token, lease)
		})
		if taken != history.Yes {
			time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
			continue
		}
		granted.Add(1)
		for deadline := time.Now().Add(rig.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			given := do(history.AskRelease, token, func(ctx context.Context) (bool, error) {
				return rig.Release(ctx, client, "lock:history", token)
			})
			if given != history.Unsure {
				break
			}
		}
	}
	return calls
}

// breakMasters pauses one master and cuts the connections of another, again and again
// until ctx ends. It leaves all masters running.
func breakMasters(ctx context.Context, c *rig.Cluster, random *rand.Rand, broken *atomic.Int64) {
	for ; ctx.Err() == nil; broken.Add(1) {
		order := random.Perm(rig.MasterCount)
		paused, cut := c.Masters[order[0]], c.Masters[order[1]]
		paused.Pause()
		for range 4 {
			limited, cancel := context.WithTimeout(context.Background(), time.Second)
			cut.Direct.Do(limited, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			cancel()
			rig.Pause(ctx, time.Duration(20+random.IntN(100))*time.Millisecond)
		}
		paused.Resume()
		rig.Pause(ctx, time.Duration(random.IntN(100))*time.Millisecond)
	}
}
