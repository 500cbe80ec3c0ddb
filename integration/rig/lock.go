package rig

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

// CriticalSection detects two holders at the same time, in two ways. It counts the
// clients inside. And each client increments a counter on the upstream in two steps, a
// read and a write, as with a resource that has no protection of its own.
type CriticalSection struct {
	inside   atomic.Int32
	entered  atomic.Int64
	overlaps atomic.Int64
	Counter  *redis.Client
	Key      string
}

// Enter does a holder's work. The caller holds the lock.
func (s *CriticalSection) Enter(ctx context.Context) error {
	if s.inside.Add(1) != 1 {
		s.overlaps.Add(1)
	}
	defer s.inside.Add(-1)
	n, err := s.Counter.Get(ctx, s.Key).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if err := s.Counter.Set(ctx, s.Key, n+1, 0).Err(); err != nil {
		return err
	}
	s.entered.Add(1)
	return nil
}

// Check fails the test if two holders were inside at the same time.
func (s *CriticalSection) Check(t testing.TB, wantEntered int64) {
	t.Helper()
	if n := s.overlaps.Load(); n > 0 {
		t.Errorf("%d times two clients held the lock at once", n)
	}
	counted, err := s.Counter.Get(context.Background(), s.Key).Int64()
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

// Contender is a client that takes the lock, enters, and releases, again and again.
type Contender struct {
	Take func(ctx context.Context) (bool, error)
	Give func(ctx context.Context) error
}

// Contend runs all contenders at once until each has entered the given number of times.
// A contender tries again if Take fails, because an error may leave the outcome open.
func Contend(t *testing.T, section *CriticalSection, contenders []Contender, times int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*Patience)
	defer cancel()
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
				if err := section.Enter(ctx); err != nil {
					failures <- err
					return
				}
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
