package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// TestManyClientsExcludeEachOther: many clients of two proxies contend for one lock.
func TestManyClientsExcludeEachOther(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	second := c.AddProxy(t, rig.Options{})
	clients := []*redis.Client{c.Proxy.Client(t), second.Client(t)}
	const contenders, turns = 24, 10
	var all []rig.Contender
	for i := range contenders {
		all = append(all, rig.TokenContender(clients[i%2], "lock:one", fmt.Sprint("client", i)))
	}
	rig.Contend(t, "lock:one", all, turns)
	c.WaitGone(t, "lock:one")
}

// TestConstantValueThroughOneProxy: applications that store "1" in every lock exclude each
// other on one Redis. Behind one proxy they do so, too.
func TestConstantValueThroughOneProxy(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	const contenders, turns = 16, 10
	var all []rig.Contender
	for range contenders {
		all = append(all, rig.Contender{
			Take: func(ctx context.Context) (bool, error) {
				return rig.Acquire(ctx, client, "lock:const", "1", rig.LongTTL)
			},
			Give: func(ctx context.Context) error {
				n, err := client.Del(ctx, "lock:const").Result()
				if err == nil && n != 1 {
					err = fmt.Errorf("DEL answers %d to the holder", n)
				}
				return err
			},
		})
	}
	rig.Contend(t, "lock:const", all, turns)
	c.WaitGone(t, "lock:const")
}

// TestReleaseThroughAnotherProxy: any proxy can release a lock, because a proxy keeps no
// state of a lock.
func TestReleaseThroughAnotherProxy(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	first, second := c.Proxy.Client(t), c.AddProxy(t, rig.Options{}).Client(t)
	rig.MustAcquire(t, first, "lock:moved", "token-of-the-first-1", rig.LongTTL)
	if ok, err := rig.Acquire(t.Context(), second, "lock:moved", "token-of-the-second", rig.LongTTL); ok || err != nil {
		t.Fatalf("acquired through the second proxy while held: %v %v", ok, err)
	}
	if owner, err := second.Get(t.Context(), "lock:moved").Result(); owner != "token-of-the-first-1" || err != nil {
		t.Fatalf("the second proxy says the owner is %q, %v", owner, err)
	}
	if ok, err := second.PExpire(t.Context(), "lock:moved", 2*rig.LongTTL).Result(); !ok || err != nil {
		t.Fatalf("extending through the second proxy: %v %v", ok, err)
	}
	rig.MustRelease(t, second, "lock:moved", "token-of-the-first-1")
	rig.MustAcquire(t, first, "lock:moved", "token-of-the-third-1", rig.LongTTL)
	rig.MustRelease(t, first, "lock:moved", "token-of-the-third-1")
	c.WaitGone(t, "lock:moved")
}

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

// TestReleaseByHashOnSomeMastersOnly: each master learns a script when some proxy or
// direct client sends it there. A client releases by the script's hash, and by its text if
// the hash is unknown. That must release its lock, whatever number of masters knows the
// script.
func TestReleaseByHashOnSomeMastersOnly(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	for known := range rig.MasterCount + 1 {
		t.Run(fmt.Sprint(known, " of 5 know it"), func(t *testing.T) {
			script := redis.NewScript(fmt.Sprintf("-- %d\n%s", known, corpus.ReleaseScripts["one line"]))
			for _, master := range c.Masters[:known] {
				if err := master.Direct.ScriptLoad(t.Context(), fmt.Sprintf("-- %d\n%s", known, corpus.ReleaseScripts["one line"])).Err(); err != nil {
					t.Fatal(err)
				}
			}
			rig.MustAcquire(t, client, "lock:hash", "token-of-the-holder-1", rig.LongTTL)
			c.WaitHeld(t, "lock:hash", "token-of-the-holder-1")
			n, err := script.Run(t.Context(), client, []string{"lock:hash"}, "token-of-the-holder-1").Int()
			if n != 1 || err != nil {
				t.Errorf("the release answers %d, %v; want 1", n, err)
			}
			c.WaitGone(t, "lock:hash")
		})
	}
}
