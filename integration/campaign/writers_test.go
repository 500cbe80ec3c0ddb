package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"

	"github.com/redis/go-redis/v9"
)

// A writer uses a lock key without any lock discipline: plain values, counters, the old lock
// of SETNX and GETSET. Several writers write through several proxies at once, and masters see
// their commands in different orders. That excludes nobody. But whatever the writers leave
// behind, the next client must be able to use the key.
type writer struct {
	name  string
	key   string
	write func(ctx context.Context, c *redis.Client, r *rand.Rand, key string) error
}

var writers = []writer{
	{"plain", "lock:plain", writePlain},
	{"counter", "lock:counter", func(ctx context.Context, c *redis.Client, r *rand.Rand, key string) error {
		if r.IntN(20) == 0 {
			return c.Del(ctx, key).Err()
		}
		return c.Incr(ctx, key).Err()
	}},
	{"getset", "lock:getset", takeOver},
}

func writePlain(ctx context.Context, c *redis.Client, r *rand.Rand, key string) error {
	value := fmt.Sprintf("value-%016x", r.Uint64())
	switch r.IntN(8) {
	case 0:
		return c.Set(ctx, key, value, 0).Err()
	case 1:
		return c.Set(ctx, key, value, rig.Between(r, shortestLease, longestLease)).Err()
	case 2:
		return c.Do(ctx, "SETEX", key, 2, value).Err()
	case 3:
		return absent(c.Do(ctx, "GETSET", key, value).Err())
	case 4:
		return c.Del(ctx, key).Err()
	case 5:
		return c.Expire(ctx, key, time.Second).Err()
	}
	return absent(c.Get(ctx, key).Err())
}

// takeOver is the lock of the old SETNX page. The value is the time at which the lock
// expires. A client that finds it expired takes it over by GETSET. This lock relies on
// clients that do not pause, so the campaign only requires that the key stays usable.
func takeOver(ctx context.Context, c *redis.Client, r *rand.Rand, key string) error {
	until := func() string { return strconv.FormatInt(time.Now().Add(shortestLease).UnixMicro(), 10) }
	ok, err := c.SetNX(ctx, key, until(), 0).Result()
	if err != nil {
		return err
	}
	if !ok {
		seen, err := c.Get(ctx, key).Result()
		if err != nil {
			return absent(err)
		}
		if at, err := strconv.ParseInt(seen, 10, 64); err == nil && time.Now().UnixMicro() < at {
			return nil
		}
		before, err := c.Do(ctx, "GETSET", key, until()).Text()
		if err != nil || before != seen {
			return absent(err)
		}
	}
	rig.Pause(ctx, rig.Between(r, 0, history.ShortStay))
	return c.Del(ctx, key).Err()
}

func absent(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// A campaignWriter writes until the campaign is over.
type campaignWriter struct {
	writer
	proxies []*redis.Client
	random  *rand.Rand
	answers *writerAnswers
}

// writerAnswers counts the answers to the writers of a key.
type writerAnswers struct {
	mu     sync.Mutex
	all    int
	errors map[string]int // by kind
}

func (a *writerAnswers) count(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all++
	if err != nil {
		a.errors[work.KindOf(err)]++
	}
}

const writersOfEach = 3

func (w campaignWriter) run(over context.Context) {
	for over.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), answerWait)
		err := w.write(ctx, w.proxies[w.random.IntN(len(w.proxies))], w.random, w.key)
		cancel()
		w.answers.count(err)
		rig.Pause(over, rig.Between(w.random, 5*time.Millisecond, 40*time.Millisecond))
	}
}

// ofUse waits until all proxies agree on a key and treat it as one Redis does: a key that can
// be read exists and can be deleted, and a deleted key can be taken.
func (c *campaign) ofUse(t *testing.T, key string) {
	for i, p := range c.proxies {
		client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
		defer client.Close()
		if err := rig.Eventually(func() error { return usable(t.Context(), client, key) }); err != nil {
			t.Errorf("%s is not usable through proxy %d: %v", key, i+1, err)
			return
		}
	}
}

func usable(ctx context.Context, c *redis.Client, key string) error {
	value, err := c.Get(ctx, key).Result()
	if absent(err) != nil {
		return fmt.Errorf("GET: %w", err)
	}
	exists := int64(0)
	if err == nil {
		exists = 1
	}
	if n, err := c.Exists(ctx, key).Result(); err != nil || n != exists {
		return fmt.Errorf("EXISTS answers %d, %v after GET has answered %q", n, err, value)
	}
	if n, err := c.Del(ctx, key).Result(); err != nil || n != exists {
		return fmt.Errorf("DEL answers %d, %v after EXISTS has answered %d", n, err, exists)
	}
	if ok, err := c.SetNX(ctx, key, "afterwards-0123456789", rig.LongTTL).Result(); err != nil || !ok {
		return fmt.Errorf("SET NX answers %v, %v after DEL", ok, err)
	}
	if n, err := c.Del(ctx, key).Result(); err != nil || n != 1 {
		return fmt.Errorf("DEL answers %d, %v after SET NX", n, err)
	}
	return nil
}
