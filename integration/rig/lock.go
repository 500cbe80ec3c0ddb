package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/history"

	"github.com/redis/go-redis/v9"
)

// CompareAndDelete is the script by which every careful client releases a lock.
var CompareAndDelete = redis.NewScript(
	`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

// Acquire tries once. After an error nobody knows who holds the lock.
func Acquire(ctx context.Context, client *redis.Client, key, token string, ttl time.Duration) (bool, error) {
	err := client.Do(ctx, "SET", key, token, "NX", "PX", ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// Release releases the lock if token holds it, and tells whether it did.
func Release(ctx context.Context, client *redis.Client, key, token string) (bool, error) {
	n, err := CompareAndDelete.Run(ctx, client, []string{key}, token).Int()
	return n == 1, err
}

// MustAcquire tries until the lock is taken.
func MustAcquire(t testing.TB, client *redis.Client, key, token string, ttl time.Duration) {
	t.Helper()
	WaitFor(t, "taking "+key, func() error {
		ok, err := Acquire(t.Context(), client, key, token, ttl)
		if err == nil && !ok {
			return errors.New("it is held")
		}
		return err
	})
}

func MustRelease(t testing.TB, client *redis.Client, key, token string) {
	t.Helper()
	if ok, err := Release(t.Context(), client, key, token); err != nil || !ok {
		t.Fatalf("releasing %s as %s: %v %v", key, token, ok, err)
	}
}

func NoQuorum(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "QUORUMLOST ") }

// Contender is a client that takes the lock, uses what it protects, and releases, again and again.
type Contender struct {
	Take func(ctx context.Context) (bool, error)
	Give func(ctx context.Context) error
}

// Contend runs all contenders at once until each has held the lock the given number of times. It fails the test if two
// did at the same time. A contender tries again if Take fails, because an error may leave the outcome open.
func Contend(t *testing.T, key string, contenders []Contender, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*Patience)
	defer cancel()
	register := &history.Register{Key: key}
	var wg sync.WaitGroup
	failures := make(chan error, len(contenders))
	for i, c := range contenders {
		wg.Go(func() {
			for done := 0; done < times; {
				if ctx.Err() != nil {
					failures <- fmt.Errorf("contender %d had only %d of %d turns when the time was over", i, done, times)
					return
				}
				if ok, err := c.Take(ctx); err != nil || !ok {
					time.Sleep(time.Duration(1+i%7) * time.Millisecond)
					continue
				}
				register.Visit(i, time.Now().Add(LongTTL))
				if err := c.Give(ctx); err != nil {
					failures <- fmt.Errorf("contender %d could not release: %w", i, err)
					return
				}
				done++
			}
		})
	}
	wg.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	register.Check(t, len(contenders)*times)
}

const LongTTL = time.Minute

// TokenContender locks with a new token in each turn.
func TokenContender(client *redis.Client, key, name string) Contender {
	turn := 0
	token := func() string { return fmt.Sprintf("%s-%016d", name, turn) }
	return Contender{
		Take: func(ctx context.Context) (bool, error) { return Acquire(ctx, client, key, token(), LongTTL) },
		Give: func(ctx context.Context) error {
			ok, err := Release(ctx, client, key, token())
			if err == nil && !ok {
				err = errors.New("the lock was no longer its own")
			}
			turn++
			return err
		},
	}
}
