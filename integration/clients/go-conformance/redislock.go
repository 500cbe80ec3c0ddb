package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	redislock09 "redislock09"
)

const redislockPoll = 20 * time.Millisecond

// redislockClient is for both versions, whose calls are the same and whose
// types are not.
type redislockClient struct {
	redis   *redis.Client
	obtain  func(ctx context.Context, by redis.Scripter, name string, ttl time.Duration, poll bool) (redislockLock, error)
	refused []error // how the version says no
	locks   map[string]redislockLock
}

type redislockLock interface {
	TTL(ctx context.Context) (time.Duration, error)
	Release(ctx context.Context) error
	refresh(ttl time.Duration) error
}

type (
	lock09  struct{ *redislock09.Lock }
	lock010 struct{ *redislock.Lock }
)

func (l lock09) refresh(ttl time.Duration) error  { return l.Refresh(context.Background(), ttl, nil) }
func (l lock010) refresh(ttl time.Duration) error { return l.Refresh(context.Background(), ttl, nil) }

func openRedislock09(addr string) client {
	obtain := func(ctx context.Context, by redis.Scripter, name string, ttl time.Duration, poll bool) (redislockLock, error) {
		options := &redislock09.Options{}
		if poll {
			options.RetryStrategy = redislock09.LinearBackoff(redislockPoll)
		}
		lock, err := redislock09.New(by).Obtain(ctx, name, ttl, options)
		return lock09{lock}, err
	}
	return newRedislock(addr, obtain, redislock09.ErrNotObtained, redislock09.ErrLockNotHeld)
}

func openRedislock010(addr string) client {
	obtain := func(ctx context.Context, by redis.Scripter, name string, ttl time.Duration, poll bool) (redislockLock, error) {
		options := &redislock.Options{}
		if poll {
			options.RetryStrategy = redislock.LinearBackoff(redislockPoll)
		}
		lock, err := redislock.New(by).Obtain(ctx, name, ttl, options)
		return lock010{lock}, err
	}
	return newRedislock(addr, obtain, redislock.ErrNotObtained, redislock.ErrLockNotHeld)
}

func newRedislock(addr string, obtain func(context.Context, redis.Scripter, string, time.Duration, bool) (redislockLock, error), refused ...error) client {
	return &redislockClient{redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience}), obtain, refused, map[string]redislockLock{}}
}

func (c *redislockClient) keys(name string) []string { return []string{name} }

func (c *redislockClient) acquire(name string, ttl time.Duration) (bool, error) {
	return c.take(context.Background(), name, ttl, false)
}

func (c *redislockClient) wait(name string, ttl, limit time.Duration) (bool, error) {
	ctx, cancel := limited(limit)
	defer cancel()
	ok, err := c.take(ctx, name, ttl, true)
	if !ok && ctx.Err() != nil {
		return false, nil
	}
	return ok, err
}

func (c *redislockClient) take(ctx context.Context, name string, ttl time.Duration, poll bool) (bool, error) {
	lock, err := c.obtain(ctx, c.redis, name, ttl, poll)
	if err == nil {
		c.locks[name] = lock
	}
	return c.settle(err)
}

func (c *redislockClient) extend(name string, ttl time.Duration) (bool, error) {
	lock, ok := c.locks[name]
	if !ok {
		return false, nil
	}
	return c.settle(lock.refresh(ttl))
}

func (c *redislockClient) release(name string) (bool, error) {
	lock, ok := c.locks[name]
	if !ok {
		return false, nil
	}
	delete(c.locks, name)
	return c.settle(lock.Release(context.Background()))
}

// steal releases by a handle that no Redis ever granted.
func (c *redislockClient) steal(name string) (bool, error) {
	forger := &forger{Client: c.redis, forging: true}
	lock, err := c.obtain(context.Background(), forger, name, time.Minute, false)
	if err != nil {
		return false, err
	}
	forger.forging = false
	return c.settle(lock.Release(context.Background()))
}

func (c *redislockClient) held(string) (bool, error) { return false, errUnsupported }

func (c *redislockClient) mine(name string) (bool, error) {
	lock, ok := c.locks[name]
	if !ok {
		return false, nil
	}
	left, err := lock.TTL(context.Background())
	return left > 0, err
}

func (c *redislockClient) settle(err error) (bool, error) {
	for _, refusal := range c.refused {
		if errors.Is(err, refusal) {
			return false, nil
		}
	}
	return err == nil, err
}

// forger is a client of Redis that, while it forges, says OK to every script
// and sends nothing.
type forger struct {
	*redis.Client
	forging bool
}

func (f *forger) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	if f.forging {
		return redis.NewCmdResult("OK", nil)
	}
	return f.Client.EvalSha(ctx, sha1, keys, args...)
}
