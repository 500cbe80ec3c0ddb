package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"redlock-proxy/integration/rig"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// directRedsync is an ordinary Redlock client of the same masters, without the proxy.
func directRedsync(t testing.TB, c *rig.Cluster, poolSize int) *redsync.Redsync {
	t.Helper()
	var pools []redsyncredis.Pool
	for _, master := range c.Masters {
		client := redis.NewClient(&redis.Options{Addr: master.Addr(), PoolSize: poolSize})
		t.Cleanup(func() { client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	return redsync.New(pools...)
}

// redsyncContender uses redsync with its defaults, but with one try per turn.
func redsyncContender(rs *redsync.Redsync, key string) rig.Contender {
	mutex := rs.NewMutex(key, redsync.WithExpiry(rig.LongTTL), redsync.WithTries(1))
	return rig.Contender{
		Take: func(ctx context.Context) (bool, error) {
			err := mutex.TryLockContext(ctx)
			return err == nil, nil
		},
		Give: func(ctx context.Context) error {
			ok, err := mutex.UnlockContext(ctx)
			if err == nil && !ok {
				err = errors.New("unlock answers false to the holder")
			}
			return err
		},
	}
}

// TestDirectRedlockClientTakesPart: redsync on the five masters and clients of
// the proxy exclude each other.
func TestDirectRedlockClientTakesPart(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	direct := directRedsync(t, c, 10)

	mutex := direct.NewMutex("lock:shared", redsync.WithExpiry(rig.LongTTL), redsync.WithTries(1))
	if err := mutex.Lock(); err != nil {
		t.Fatal(err)
	}
	if ok, err := rig.Acquire(t.Context(), client, "lock:shared", "token-of-the-proxied", rig.LongTTL); ok || err != nil {
		t.Fatalf("acquired what redsync holds: %v %v", ok, err)
	}
	if owner, err := client.Get(t.Context(), "lock:shared").Result(); owner != mutex.Value() || err != nil {
		t.Fatalf("the proxy says the owner is %q, redsync's token is %q (%v)", owner, mutex.Value(), err)
	}
	if ok, err := mutex.Unlock(); !ok || err != nil {
		t.Fatalf("redsync unlocks: %v %v", ok, err)
	}
	rig.MustAcquire(t, client, "lock:shared", "token-of-the-proxied", rig.LongTTL)
	c.WaitHeld(t, "lock:shared", "token-of-the-proxied")
	if err := mutex.TryLock(); !errors.As(err, new(*redsync.ErrTaken)) {
		t.Fatalf("redsync is answered %v about what a client of the proxy holds, want that it is taken", err)
	}
	rig.MustRelease(t, client, "lock:shared", "token-of-the-proxied")

	const each, turns = 4, 8
	var all []rig.Contender
	for i := range each {
		all = append(all, rig.TokenContender(client, "lock:shared", fmt.Sprint("proxied", i)), redsyncContender(direct, "lock:shared"))
	}
	rig.Contend(t, "lock:shared", all, turns)
	c.WaitGone(t, "lock:shared")
}
