package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A writer uses a lock key as applications do that promise each other nothing:
// plain values, counters, the old lock of SETNX and GETSET. Several of them
// write through several proxies at once, and masters see that in different
// orders. Nobody is excluded by it; but whatever they leave behind, the key
// must be of use to the next one.
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
		return c.Set(ctx, key, value, between(r, shortestLease, longestLease)).Err()
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

// takeOver is the lock of the old SETNX page: the value is until when it is held,
// and who finds that past takes it over by GETSET. It relies on clients that do
// not pause, so here it only has to stay of use.
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
	pause(ctx, between(r, 0, shortStay))
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

// writerAnswers counts what the writers of a key were told.
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
		a.errors[kindOf(err)]++
	}
}

const writersOfEach = 3

func (w campaignWriter) run(over context.Context) {
	for over.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), answerWait)
		err := w.write(ctx, w.proxies[w.random.IntN(len(w.proxies))], w.random, w.key)
		cancel()
		w.answers.count(err)
		pause(over, between(w.random, 5*time.Millisecond, 40*time.Millisecond))
	}
}

// ofUse waits until every proxy says the same of a key and does with it what one
// Redis does: what can be read exists and can be deleted, and what was deleted can
// be taken.
func (c *campaign) ofUse(t *testing.T, key string) {
	for i, p := range c.proxies {
		client := redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: -1})
		defer client.Close()
		if err := eventually(func() error { return usable(t.Context(), client, key) }); err != nil {
			t.Errorf("%s is not of use through proxy %d: %v", key, i+1, err)
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
	if ok, err := c.SetNX(ctx, key, "afterwards-0123456789", longTTL).Result(); err != nil || !ok {
		return fmt.Errorf("SET NX answers %v, %v after DEL", ok, err)
	}
	if n, err := c.Del(ctx, key).Result(); err != nil || n != 1 {
		return fmt.Errorf("DEL answers %d, %v after SET NX", n, err)
	}
	return nil
}
