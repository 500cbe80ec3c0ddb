package main

import (
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/redis/go-redis/v9"
)

// patience is the time for a reply. A rule with a wait holds an acquire back, and a machine
// may be slow.
const patience = time.Minute

// redsyncClient uses redsync with one pool, as an application does that has
// one Redis.
type redsyncClient struct {
	redsync *redsync.Redsync
	mutexes map[string]*redsync.Mutex
}

func openRedsyncOverGoRedis(addr string) client {
	return newRedsync(goredis.NewPool(redis.NewClient(overTLS(redis.Options{Addr: addr, ReadTimeout: patience}))))
}

func openRedsyncOverRedigo(addr string) client { return newRedsync(redigo.NewPool(redigoPool(addr))) }

func newRedsync(pool pools.Pool) client {
	return &redsyncClient{redsync.New(pool), map[string]*redsync.Mutex{}}
}

func (c *redsyncClient) keys(name string) []string { return []string{name} }

func (c *redsyncClient) acquire(name string, ttl time.Duration) (bool, error) {
	mutex := c.redsync.NewMutex(name, redsync.WithExpiry(ttl))
	ok, err := settle(true, mutex.TryLock())
	if ok {
		c.mutexes[name] = mutex
	}
	return ok, err
}

func (c *redsyncClient) wait(name string, ttl, limit time.Duration) (bool, error) {
	ctx, cancel := limited(limit)
	defer cancel()
	mutex := c.redsync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(1<<30))
	ok, err := settle(true, mutex.LockContext(ctx))
	if ok {
		c.mutexes[name] = mutex
	} else if ctx.Err() != nil {
		return false, nil
	}
	return ok, err
}

// extend makes a mutex of the same token, because the time by which redsync
// extends is the one that the mutex was made with.
func (c *redsyncClient) extend(name string, ttl time.Duration) (bool, error) {
	mutex, ok := c.mutexes[name]
	if !ok {
		return false, nil
	}
	return settle(c.redsync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithValue(mutex.Value())).Extend())
}

func (c *redsyncClient) release(name string) (bool, error) {
	mutex, ok := c.mutexes[name]
	if !ok {
		return false, nil
	}
	delete(c.mutexes, name)
	return settle(mutex.Unlock())
}

func (c *redsyncClient) steal(name string) (bool, error) {
	return settle(c.redsync.NewMutex(name, redsync.WithValue("a-token-that-nobody-has")).Unlock())
}

func (c *redsyncClient) held(string) (bool, error) { return false, errUnsupported }

func (c *redsyncClient) mine(name string) (bool, error) {
	mutex, ok := c.mutexes[name]
	if !ok {
		return false, nil
	}
	//lint:ignore SA1019 it is the one look at the lock that redsync has
	return settle(mutex.Valid())
}

// settle tells a refusal, which redsync words as an error, from a failure.
func settle(ok bool, err error) (bool, error) {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.Is(err, redsync.ErrExtendFailed) {
		return false, nil
	}
	return ok && err == nil, err
}
