package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// lockClient takes and releases one lock at a time. One goroutine may use it.
type lockClient interface {
	acquire(key string) (held bool, err error)
	release(key string) error
}

// leanClients returns n clients of the server at addr that release with script.
func (b *bench) leanClients(addr string, n int, script string) []lockClient {
	clients := make([]lockClient, n)
	for i := range clients {
		client := must(dialLean(addr))
		b.atEnd(client.close)
		check(client.lockWith(script))
		clients[i] = client
	}
	return clients
}

// redsyncClients returns n clients of one redsync over all of these servers. These are the
// masters, or the proxy as the only server.
func (b *bench) redsyncClients(n int, addresses ...string) []lockClient {
	var pools []redsyncredis.Pool
	for _, addr := range addresses {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: n, MinIdleConns: n})
		b.atEnd(func() { client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	rs := redsync.New(pools...)
	clients := make([]lockClient, n)
	for i := range clients {
		clients[i] = &redsyncClient{rs: rs}
	}
	return clients
}

type redsyncClient struct {
	rs    *redsync.Redsync
	mutex *redsync.Mutex
}

func (c *redsyncClient) acquire(key string) (bool, error) {
	if c.mutex == nil || c.mutex.Name() != key {
		c.mutex = c.rs.NewMutex(key, redsync.WithExpiry(lockTTL), redsync.WithTries(1))
	}
	err := c.mutex.TryLockContext(running)
	var broken *redsync.RedisError
	if errors.As(err, &broken) {
		return false, err
	}
	return err == nil, nil
}

func (c *redsyncClient) release(_ string) error {
	released, err := c.mutex.UnlockContext(running)
	if err == nil && !released {
		err = errNotReleased
	}
	return err
}

var errRefused = errors.New("a lock that nobody else wants was refused")

// cycles makes one turn for each client: it takes a lock of its own and releases it. Only
// the given part of the cycle is measured.
func cycles(clients []lockClient, measured part) []turn {
	turns := make([]turn, len(clients))
	for i, client := range clients {
		key, failures := fmt.Sprintf("lock:bench:%d", i), 0
		turns[i] = func() (time.Duration, error) {
			took, err := cycle(client, key, measured)
			if err != nil { // the lock may stay held until its TTL ends
				failures++
				key = fmt.Sprintf("lock:bench:%d:%d", i, failures)
			}
			return took, err
		}
	}
	return turns
}

type part int

const (
	wholeCycle part = iota
	acquireOnly
	releaseOnly
)

func cycle(client lockClient, key string, measured part) (time.Duration, error) {
	began := time.Now()
	held, err := client.acquire(key)
	if err != nil {
		return 0, err
	}
	if !held {
		return 0, errRefused
	}
	acquired := time.Now()
	if err := client.release(key); err != nil {
		return 0, err
	}
	switch measured {
	case acquireOnly:
		return acquired.Sub(began), nil
	case releaseOnly:
		return time.Since(acquired), nil
	default:
		return time.Since(began), nil
	}
}
