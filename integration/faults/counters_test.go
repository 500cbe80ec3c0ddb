package faults

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestNoNumberIsToldTwice: clients of two proxies count with one key, in each way to count. No number
// may be told twice, and a read may not show less than a number that was told before it.
func TestNoNumberIsToldTwice(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	second := c.AddProxy(t, rig.Options{})
	for _, row := range []struct{ name, next, read string }{
		{"string", `INCR lock:string`, `GET lock:string`},
		{"hash", `HINCRBY lock:hash field 1`, `HGET lock:hash field`},
		{"sorted set", `ZINCRBY lock:scores 1 member`, `ZSCORE lock:scores member`},
		{"script", `EVAL "local n = redis.call('hincrby', KEYS[1], 'f', 1) redis.call('pexpire', KEYS[1], 600000) return n" 1 lock:script`, `HGET lock:script f`},
		{"key of no argument", `EVAL "return redis.call('incr', 'lock:unnamed')" 1 lock:other`, `GET lock:unnamed`},
	} {
		t.Run(row.name, func(t *testing.T) {
			const enough = 300
			told := numbers{times: map[int64]int{}}
			ctx, stop := context.WithTimeout(t.Context(), rig.Patience)
			defer stop()
			var wg sync.WaitGroup
			for i := range 4 {
				client := []*redis.Client{c.Proxy.Client(t), second.Client(t)}[i%2]
				wg.Go(func() {
					for told.count() < enough && ctx.Err() == nil {
						told.tell(number(ctx, client, row.next))
						least := told.highest()
						if n, err := number(ctx, client, row.read); err == nil && n < least {
							t.Errorf("%d was read after %d was told", n, least)
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d numbers were told, %d twice, and %d requests failed, such as by: %v", len(told.times), told.twice, told.failed, told.failure)
			if told.twice > 0 || told.count() < enough {
				t.Errorf("want %d numbers, and none twice", enough)
			}
		})
	}
}

func number(ctx context.Context, client *redis.Client, command string) (int64, error) {
	var args []any
	for _, word := range corpus.Words(command) {
		args = append(args, word)
	}
	reply, err := client.Do(context.WithoutCancel(ctx), args...).Result()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(fmt.Sprint(reply), 64)
	return int64(n), err
}

// numbers are those that clients have heard.
type numbers struct {
	mu      sync.Mutex
	times   map[int64]int
	top     int64
	twice   int
	failed  int
	failure error
}

func (s *numbers) tell(n int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed, s.failure = s.failed+1, err
		return
	}
	if s.times[n]++; s.times[n] > 1 {
		s.twice++
	}
	s.top = max(s.top, n)
}

func (s *numbers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

func (s *numbers) highest() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.top
}
