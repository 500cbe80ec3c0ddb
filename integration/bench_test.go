package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// benchRounds is how often each contestant runs; they take turns, so that
// what else the machine does hits all of them.
const benchRounds = 3

// BenchmarkLockCycle measures lock+release cycles a second, each client on a
// lock of its own, of
//
//	proxy    redsync with one pool, the proxy, which it takes for a Redis
//	plain    SET NX PX and DEL with go-redis, through the proxy
//	redsync  redsync with five pools, the masters themselves
//
// all over the same five masters. Only ratios within one run mean anything.
func BenchmarkLockCycle(b *testing.B) {
	binary := filepath.Join(scratch, "redlock-proxy")
	if err := buildProxy(binary); err != nil {
		b.Fatal(err)
	}
	c := startServers(b)
	proxy := c.addProxy(b, proxyOptions{binary: binary, logLevel: "warn"})
	for _, clients := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			proxied := redis.NewClient(&redis.Options{Addr: proxy.addr(), PoolSize: clients})
			b.Cleanup(func() { proxied.Close() })
			contestants := []struct {
				name  string
				cycle func(ctx context.Context, key string) error
			}{
				{"proxy", redsyncCycle(redsync.New(goredis.NewPool(proxied)))},
				{"plain", plainCycle(proxied)},
				{"redsync", redsyncCycle(directRedsync(b, c, clients))},
			}
			rates := map[string][]float64{}
			for range benchRounds {
				for _, each := range contestants {
					var rate float64 // of the longest run, which comes last
					b.Run(each.name, func(b *testing.B) {
						rate = cyclesPerSecond(b, clients, each.cycle)
						b.ReportMetric(rate, "cycles/s")
					})
					rates[each.name] = append(rates[each.name], rate)
				}
			}
			reportRatios(clients, rates)
		})
	}
}

func redsyncCycle(rs *redsync.Redsync) func(ctx context.Context, key string) error {
	return func(ctx context.Context, key string) error {
		mutex := rs.NewMutex(key, redsync.WithExpiry(time.Minute), redsync.WithTries(1))
		if err := mutex.TryLockContext(ctx); err != nil {
			return err
		}
		ok, err := mutex.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("unlock answers false")
		}
		return err
	}
}

func plainCycle(client *redis.Client) func(ctx context.Context, key string) error {
	return func(ctx context.Context, key string) error {
		if ok, err := acquire(ctx, client, key, "a-token-of-16-bytes-and-more", time.Minute); err != nil || !ok {
			return fmt.Errorf("acquire: %v %w", ok, err)
		}
		return client.Del(ctx, key).Err()
	}
}

// cyclesPerSecond lets so many clients share b.N cycles.
func cyclesPerSecond(b *testing.B, clients int, cycle func(ctx context.Context, key string) error) float64 {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for i := range clients {
		wg.Go(func() {
			key := fmt.Sprintf("lock:bench:%d", i)
			for left.Add(-1) >= 0 {
				if err := cycle(b.Context(), key); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(b.N) / b.Elapsed().Seconds()
}

func reportRatios(clients int, rates map[string][]float64) {
	middle := map[string]float64{}
	for name, each := range rates {
		slices.Sort(each)
		middle[name] = each[len(each)/2]
	}
	fmt.Printf("%d clients: proxy %.0f, plain %.0f, redsync %.0f cycles/s; proxy/redsync %.2f, plain/redsync %.2f\n",
		clients, middle["proxy"], middle["plain"], middle["redsync"],
		middle["proxy"]/middle["redsync"], middle["plain"]/middle["redsync"])
}
