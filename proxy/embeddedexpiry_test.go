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
	const rounds, clients = 30, 8
	client, masters := startEmbedded(t)
	for round := range rounds {
		lock := fmt.Sprint("lock:ends-", round)
		setAll(t, masters, lock, time.Now().Add(20*time.Millisecond))
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
	transact := func(lock string) (deleted int64, err error) {
		replies, err := client.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
			tx.Del(t.Context(), lock)
			return nil
		})
		if err != nil {
			return 0, err
		}
		return replies[0].(*redis.IntCmd).Val(), nil
	}
	setAll(t, masters, "lock:ends-later", time.Now().Add(time.Hour))
	if n, err := transact("lock:ends-later"); n != 1 || err != nil {
		t.Errorf("a lock that has not ended: %d deleted, %v", n, err)
	}
	ttl := 8 * time.Millisecond // it comes near to the time that a round takes
	var last string
	for round := range 60 {
		last = fmt.Sprint("lock:ends-", round)
		setAll(t, masters, last, time.Now().Add(ttl))
		switch n, err := transact(last); {
		case err == nil:
			ttl = max(ttl+time.Duration(1-2*n)*time.Millisecond, time.Millisecond)
		case !strings.HasPrefix(err.Error(), "QUORUMLOST the answers of "): // the masters have different times
			t.Errorf("round %d: %v", round, err)
		}
	}
	until(t, "the last lock has ended", func() bool { return client.Exists(t.Context(), last).Val() == 0 })
	if n, err := transact(last); n != 0 || err != nil {
		t.Errorf("a lock that has ended: %d deleted, %v", n, err)
	}
}

// startEmbedded returns a client of a proxy with embedded masters, and one of each master.
func startEmbedded(t *testing.T) (client *redis.Client, masters []*redis.Client) {
	t.Helper()
	cfg := config.Demo()
	cfg.MasterTimeout = patience
	cfg.Retry.Count, cfg.Retry.Delay = 20, 5*time.Millisecond // the masters' answers differ while a lock ends
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

// setAll has another client hold a lock on all masters. All copies end at the same time.
func setAll(t *testing.T, masters []*redis.Client, lock string, end time.Time) {
	t.Helper()
	for _, m := range masters {
		if err := m.Do(t.Context(), "SET", lock, "another", "PXAT", end.UnixMilli()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
