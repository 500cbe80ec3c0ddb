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
	cfg := config.Demo()
	cfg.MasterTimeout = patience
	cfg.Retry.Count, cfg.Retry.Delay = 20, 5*time.Millisecond // copies end one after the other
	p, _ := startWholeProxy(t, cfg)
	waitReady(t, p)
	dial := func(address string) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, PoolSize: clients, ReadTimeout: patience})
		t.Cleanup(func() { c.Close() })
		return c
	}
	client := dial(p.listener.Addr().String())
	var masters []*redis.Client
	for _, server := range p.embedded {
		if strings.HasPrefix(server.Name(), "embedded-") {
			masters = append(masters, dial(server.Address()))
		}
	}
	for round := range rounds {
		lock := fmt.Sprint("lock:ends-", round)
		for _, m := range masters {
			if err := m.Set(t.Context(), lock, "another", 20*time.Millisecond).Err(); err != nil {
				t.Fatal(err)
			}
		}
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
