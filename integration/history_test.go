package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// lockOperation is what a client asked of the one lock; lockAnswer is what it
// was told.
type lockOperation struct {
	release bool
	token   string
}

type lockAnswer string

const (
	yes    lockAnswer = "yes"
	no     lockAnswer = "no"
	unsure lockAnswer = "unsure" // an error
)

// lockModel is one lock on one perfect server; its state is the holder.
//
// An acquire that was not granted changes nothing and is left out of the
// history: Redlock may fail to elect anybody, and what ended in an error must
// never have happened. A release that ended in an error may or may not have
// happened; the client asks again.
var lockModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, output any) []any {
		holder, op := state.(string), input.(lockOperation)
		answer := output.(lockAnswer)
		switch {
		case !op.release:
			if holder == "" {
				return []any{op.token}
			}
			return nil
		case answer == yes:
			if holder == op.token {
				return []any{""}
			}
			return nil
		case answer == no:
			if holder != op.token {
				return []any{holder}
			}
			return nil
		case holder == op.token:
			return []any{holder, ""}
		}
		return []any{holder}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, output any) string {
		op := input.(lockOperation)
		if op.release {
			return fmt.Sprintf("release %s: %s", op.token, output)
		}
		return fmt.Sprintf("acquire %s: %s", op.token, output)
	},
}

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
	histories := make([][]porcupine.Operation, 8)
	for i := range histories {
		wg.Go(func() { histories[i] = useLock(ctx, i, clients[i%len(clients)], start) })
	}
	wg.Wait()

	var history []porcupine.Operation
	count := map[string]int{}
	for _, each := range histories {
		history = append(history, each...)
	}
	var granted []porcupine.Operation
	for _, op := range history {
		kind, answer := "acquire", op.Output.(lockAnswer)
		if op.Input.(lockOperation).release {
			kind = "release"
		}
		count[kind+" "+string(answer)]++
		if kind == "release" || answer == yes {
			granted = append(granted, op)
		}
	}
	t.Logf("history: %v", count)
	if count["acquire yes"] < 20 {
		t.Errorf("only %d acquires were granted: the locks did not go on", count["acquire yes"])
	}
	if result := porcupine.CheckOperationsTimeout(lockModel.ToModel(), granted, 2*patience); result != porcupine.Ok {
		t.Errorf("porcupine says %s: no order of these operations fits one lock on one server", result)
	}
	defer func() {
		for _, op := range history {
			for _, master := range c.masters {
				if left, ok := master.value(t, "lock:history"); ok && op.Input.(lockOperation).token == left {
					t.Logf("%s still holds what this made: %s, from %s to %s", master.name,
						lockModel.DescribeOperation(op.Input, op.Output), start.Add(time.Duration(op.Call)).Format(time.StampMicro),
						start.Add(time.Duration(op.Return)).Format(time.StampMicro))
				}
			}
		}
	}()
	c.waitGone(t, "lock:history")
}

// useLock takes and gives back the lock until ctx ends, and then gives back
// what it holds.
func useLock(ctx context.Context, id int, client *redis.Client, start time.Time) []porcupine.Operation {
	var history []porcupine.Operation
	do := func(op lockOperation, f func(ctx context.Context) (bool, error)) lockAnswer {
		limited, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		call := time.Since(start).Nanoseconds()
		ok, err := f(limited)
		answer := no
		switch {
		case err != nil:
			answer = unsure
		case ok:
			answer = yes
		}
		history = append(history, porcupine.Operation{
			ClientId: id, Input: op, Call: call, Output: answer, Return: time.Since(start).Nanoseconds(),
		})
		return answer
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		token := fmt.Sprintf("client-%d-turn-%010d", id, turn)
		taken := do(lockOperation{token: token}, func(ctx context.Context) (bool, error) {
			return acquire(ctx, client, "lock:history", token, 10*time.Minute)
		})
		if taken != yes {
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
			continue
		}
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			given := do(lockOperation{release: true, token: token}, func(ctx context.Context) (bool, error) {
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
