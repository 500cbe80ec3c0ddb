package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete is how every careful client releases.
var compareAndDelete = redis.NewScript(
	`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`)

// acquire tries once. An error says nothing about who holds the lock.
func acquire(ctx context.Context, client *redis.Client, key, token string, ttl time.Duration) (bool, error) {
	err := client.Do(ctx, "SET", key, token, "NX", "PX", ttl.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// release gives back what token holds and tells whether it held it.
func release(ctx context.Context, client *redis.Client, key, token string) (bool, error) {
	n, err := compareAndDelete.Run(ctx, client, []string{key}, token).Int()
	return n == 1, err
}

// mustAcquire tries until the lock is taken.
func mustAcquire(t testing.TB, client *redis.Client, key, token string, ttl time.Duration) {
	t.Helper()
	waitFor(t, "taking "+key, func() error {
		ok, err := acquire(t.Context(), client, key, token, ttl)
		if err == nil && !ok {
			return errors.New("it is held")
		}
		return err
	})
}

func mustRelease(t testing.TB, client *redis.Client, key, token string) {
	t.Helper()
	if ok, err := release(t.Context(), client, key, token); err != nil || !ok {
		t.Fatalf("releasing %s as %s: %v %v", key, token, ok, err)
	}
}

func noQuorum(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "QUORUMLOST ") }

// criticalSection finds out about two holders at once in two ways: by being
// there, and by a counter on the upstream that is read and written in two
// steps, as a resource without any guard of its own is.
type criticalSection struct {
	inside   atomic.Int32
	entered  atomic.Int64
	overlaps atomic.Int64
	counter  *redis.Client
	key      string
}

// enter does a holder's work. The caller holds the lock.
func (s *criticalSection) enter(ctx context.Context) error {
	if s.inside.Add(1) != 1 {
		s.overlaps.Add(1)
	}
	defer s.inside.Add(-1)
	n, err := s.counter.Get(ctx, s.key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if err := s.counter.Set(ctx, s.key, n+1, 0).Err(); err != nil {
		return err
	}
	s.entered.Add(1)
	return nil
}

// check fails the test if two holders ever met.
func (s *criticalSection) check(t testing.TB, wantEntered int64) {
	t.Helper()
	if n := s.overlaps.Load(); n > 0 {
		t.Errorf("%d times two clients held the lock at once", n)
	}
	counted, err := s.counter.Get(context.Background(), s.key).Int64()
	if err != nil {
		t.Fatal(err)
	}
	if entered := s.entered.Load(); counted != entered {
		t.Errorf("the counter is %d after %d increments: some were lost", counted, entered)
	}
	if entered := s.entered.Load(); entered < wantEntered {
		t.Errorf("the section was entered %d times, want %d", entered, wantEntered)
	}
}

// contender takes the lock, enters, and releases, a number of times.
type contender struct {
	take func(ctx context.Context) (bool, error)
	give func(ctx context.Context) error
}

// contend runs all contenders at once, each until it has entered so many
// times. Errors of take are tried again: a lock service may be unsure.
func contend(t *testing.T, section *criticalSection, contenders []contender, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var wg sync.WaitGroup
	failures := make(chan error, len(contenders))
	for i, c := range contenders {
		wg.Go(func() {
			for done := 0; done < times; {
				if ctx.Err() != nil {
					failures <- fmt.Errorf("contender %d had %d of %d turns when patience was over", i, done, times)
					return
				}
				if ok, err := c.take(ctx); err != nil || !ok {
					time.Sleep(time.Duration(1+i%7) * time.Millisecond)
					continue
				}
				if err := section.enter(ctx); err != nil {
					failures <- err
					return
				}
				if err := c.give(ctx); err != nil {
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
}
