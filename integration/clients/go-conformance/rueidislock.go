package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockClient has a locker for each TTL, because a locker has one for
// all its locks.
type rueidislockClient struct {
	options rueidislock.LockerOption
	lockers map[time.Duration]rueidislock.Locker
	locks   map[string]rueidisLock
}

// rueidisLock is a lock as the application sees it: a context that ends with
// it, and how to give it back.
type rueidisLock struct {
	held context.Context
	give context.CancelFunc
}

func openRueidislock(addr string) client {
	return &rueidislockClient{rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: tlsConfig(), Password: os.Getenv("REDIS_PASSWORD")},
		TryNextAfter: 10 * time.Second, // of 20 ms a busy machine makes failures
	}, map[time.Duration]rueidislock.Locker{}, map[string]rueidisLock{}}
}

func openRueidislockNoLoop(addr string) client {
	client := openRueidislock(addr).(*rueidislockClient)
	client.options.NoLoopTracking = true
	return client
}

// openRueidislockWithoutTracking polls every TryNextAfter instead of waiting
// for invalidations.
func openRueidislockWithoutTracking(addr string) client {
	client := openRueidislock(addr).(*rueidislockClient)
	client.options.ClientOption.DisableCache = true
	client.options.TryNextAfter = 500 * time.Millisecond
	return client
}

func (c *rueidislockClient) locker(ttl time.Duration) rueidislock.Locker {
	if c.lockers[ttl] == nil {
		options := c.options
		options.KeyValidity = ttl
		locker, err := rueidislock.NewLocker(options)
		if err != nil {
			log.Fatal(err)
		}
		c.lockers[ttl] = locker
	}
	return c.lockers[ttl]
}

func (c *rueidislockClient) keys(name string) []string {
	var keys []string
	for i := range 3 {
		keys = append(keys, fmt.Sprintf("rueidislock:%d:%s", i, name))
	}
	return keys
}

func (c *rueidislockClient) acquire(name string, ttl time.Duration) (bool, error) {
	held, give, err := c.locker(ttl).TryWithContext(context.Background(), name)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return false, nil
	}
	return c.keep(name, rueidisLock{held, give}, err)
}

// wait cannot give the library a context with the limit: the lock would end
// with it.
func (c *rueidislockClient) wait(name string, ttl, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	late := errors.New("the limit is over")
	timer := time.AfterFunc(limit, func() { cancel(late) })
	held, give, err := c.locker(ttl).WithContext(ctx, name)
	timer.Stop()
	if errors.Is(context.Cause(ctx), late) {
		if err == nil {
			give()
		}
		return false, nil
	}
	return c.keep(name, rueidisLock{held, give}, err)
}

func (c *rueidislockClient) keep(name string, lock rueidisLock, err error) (bool, error) {
	if err == nil {
		c.locks[name] = lock
	}
	return err == nil, err
}

// extend: the locker does it, for as long as the lock is held.
func (c *rueidislockClient) extend(string, time.Duration) (bool, error) { return false, errUnsupported }

func (c *rueidislockClient) release(name string) (bool, error) {
	lock, ok := c.locks[name]
	if !ok || lock.held.Err() != nil {
		return false, nil
	}
	delete(c.locks, name)
	lock.give()
	return true, nil
}

func (c *rueidislockClient) steal(string) (bool, error) { return false, errUnsupported }
func (c *rueidislockClient) held(string) (bool, error)  { return false, errUnsupported }

func (c *rueidislockClient) mine(name string) (bool, error) {
	lock, ok := c.locks[name]
	return ok && lock.held.Err() == nil, nil
}
