package proxy

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/config"

	"github.com/redis/go-redis/v9"
)

// obtain is the script by which Spring's RedisLockRegistry acquires and renews.
const obtain = `
local lockClientId = redis.call('GET', KEYS[1])
if lockClientId == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return true
elseif not lockClientId then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return true
end
return false`

// An embedded master's clock goes on while it runs a script between two looks. A lock that ends
// in between was not deleted by the script. So one client gets the lock, and the others are
// refused, as by a single Redis.
func TestEmbeddedMastersAnswerScriptsWhileALockEnds(t *testing.T) {
	const rounds, clients = 60, 8
	client, masters := startEmbedded(t)
	for round := range rounds {
		lock := fmt.Sprint("lock:ends-", round)
		setAll(t, masters, lock, 20*time.Millisecond)
		var all sync.WaitGroup
		var taken atomic.Int32
		for i := range clients {
			all.Go(func() {
				for taken.Load() == 0 {
					switch _, err := client.Eval(t.Context(), obtain, []string{lock}, fmt.Sprint("client ", i), 60000).Result(); err {
					case redis.Nil:
					case nil:
						taken.Add(1)
					default:
						t.Errorf("client %d of %s: %v", i, lock, err)
						return
					}
				}
			})
		}
		all.Wait()
		if n := taken.Load(); n != 1 {
			t.Fatalf("%d clients hold %s", n, lock)
		}
	}
}

// A client that watches nothing hears from EXEC what its DEL did, also while the lock ends, and never
// that keys have changed.
func TestATransactionThatDeletesIsAnsweredWhileALockEnds(t *testing.T) {
	client, masters := startEmbedded(t)
	deleted := map[int64]int{}
	ttl := 8 * time.Millisecond // it comes near to the time that a round takes
	for round := range 120 {
		lock := fmt.Sprint("lock:ends-", round)
		setAll(t, masters, lock, ttl)
		replies, err := client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
			tx.Del(t.Context(), lock)
			return nil
		})
		switch {
		case err == nil:
			n := replies[0].(*redis.IntCmd).Val()
			deleted[n]++
			ttl = max(ttl+time.Duration(1-2*n)*time.Millisecond, time.Millisecond)
		case !strings.HasPrefix(err.Error(), "QUORUMLOST the answers of "): // copies end one after the other
			t.Errorf("round %d: %v", round, err)
		}
	}
	if deleted[0] == 0 || deleted[1] == 0 {
		t.Errorf("the lock ended before or after in all rounds, with %v at the end: %v", ttl, deleted)
	}
}

// startEmbedded returns a client of a proxy with embedded masters, and one of each master.
func startEmbedded(t *testing.T) (client *redis.Client, masters []*redis.Client) {
	t.Helper()
	cfg := config.Demo()
	cfg.MasterTimeout = patience
	cfg.Retry.Count, cfg.Retry.Delay = 20, 5*time.Millisecond // copies end one after the other
	p, _ := startWholeProxy(t, cfg)
	waitReady(t, p)
	dial := func(address string) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, ReadTimeout: patience})
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, server := range p.embedded {
		if strings.HasPrefix(server.Name(), "embedded-") {
			masters = append(masters, dial(server.Address()))
		}
	}
	return dial(p.listener.Addr().String()), masters
}

// setAll has another client hold a lock on all masters.
func setAll(t *testing.T, masters []*redis.Client, lock string, ttl time.Duration) {
	t.Helper()
	for _, m := range masters {
		if err := m.Set(t.Context(), lock, "another", ttl).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
