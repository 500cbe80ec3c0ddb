package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const longTTL = time.Minute

// tokenContender locks with a token of its own each turn.
func tokenContender(client *redis.Client, key, name string) contender {
	turn := 0
	token := func() string { return fmt.Sprintf("%s-%016d", name, turn) }
	return contender{
		take: func(ctx context.Context) (bool, error) { return acquire(ctx, client, key, token(), longTTL) },
		give: func(ctx context.Context) error {
			ok, err := release(ctx, client, key, token())
			if err == nil && !ok {
				err = errors.New("the lock was no longer its own")
			}
			turn++
			return err
		},
	}
}

// TestManyClientsExcludeEachOther lets clients of two proxies fight for one lock.
func TestManyClientsExcludeEachOther(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	second := c.addProxy(t, proxyOptions{})
	section := &criticalSection{counter: c.upstream.direct, key: "counter"}
	clients := []*redis.Client{c.proxy.client(t), second.client(t)}
	const contenders, turns = 24, 10
	var all []contender
	for i := range contenders {
		all = append(all, tokenContender(clients[i%2], "lock:one", fmt.Sprint("client", i)))
	}
	contend(t, section, all, turns)
	section.check(t, contenders*turns)
	c.waitGone(t, "lock:one")
}

// TestConstantValueThroughOneProxy: applications that store "1" in every lock
// are safe among themselves on one Redis, and so they are behind one proxy.
func TestConstantValueThroughOneProxy(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	section := &criticalSection{counter: c.upstream.direct, key: "counter"}
	const contenders, turns = 16, 10
	var all []contender
	for range contenders {
		all = append(all, contender{
			take: func(ctx context.Context) (bool, error) { return acquire(ctx, client, "lock:const", "1", longTTL) },
			give: func(ctx context.Context) error {
				n, err := client.Del(ctx, "lock:const").Result()
				if err == nil && n != 1 {
					err = fmt.Errorf("DEL answers %d to the holder", n)
				}
				return err
			},
		})
	}
	contend(t, section, all, turns)
	section.check(t, contenders*turns)
	c.waitGone(t, "lock:const")
}

// TestReleaseThroughAnotherProxy: a proxy keeps no lock of its own.
func TestReleaseThroughAnotherProxy(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	first, second := c.proxy.client(t), c.addProxy(t, proxyOptions{}).client(t)
	mustAcquire(t, first, "lock:moved", "token-of-the-first-1", longTTL)
	if ok, err := acquire(t.Context(), second, "lock:moved", "token-of-the-second", longTTL); ok || err != nil {
		t.Fatalf("acquired through the second proxy while held: %v %v", ok, err)
	}
	if owner, err := second.Get(t.Context(), "lock:moved").Result(); owner != "token-of-the-first-1" || err != nil {
		t.Fatalf("the second proxy says the owner is %q, %v", owner, err)
	}
	if ok, err := second.PExpire(t.Context(), "lock:moved", 2*longTTL).Result(); !ok || err != nil {
		t.Fatalf("extending through the second proxy: %v %v", ok, err)
	}
	mustRelease(t, second, "lock:moved", "token-of-the-first-1")
	mustAcquire(t, first, "lock:moved", "token-of-the-third-1", longTTL)
	mustRelease(t, first, "lock:moved", "token-of-the-third-1")
	c.waitGone(t, "lock:moved")
}

// directRedsync is an ordinary Redlock client of the same masters.
func directRedsync(t testing.TB, c *cluster, poolSize int) *redsync.Redsync {
	t.Helper()
	var pools []redsyncredis.Pool
	for _, master := range c.masters {
		client := redis.NewClient(&redis.Options{Addr: master.addr(), PoolSize: poolSize})
		t.Cleanup(func() { client.Close() })
		pools = append(pools, goredis.NewPool(client))
	}
	return redsync.New(pools...)
}

// redsyncContender uses redsync as it comes, one try a turn.
func redsyncContender(rs *redsync.Redsync, key string) contender {
	mutex := rs.NewMutex(key, redsync.WithExpiry(longTTL), redsync.WithTries(1))
	return contender{
		take: func(ctx context.Context) (bool, error) {
			err := mutex.TryLockContext(ctx)
			return err == nil, nil
		},
		give: func(ctx context.Context) error {
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
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	direct := directRedsync(t, c, 10)

	mutex := direct.NewMutex("lock:shared", redsync.WithExpiry(longTTL), redsync.WithTries(1))
	if err := mutex.Lock(); err != nil {
		t.Fatal(err)
	}
	if ok, err := acquire(t.Context(), client, "lock:shared", "token-of-the-proxied", longTTL); ok || err != nil {
		t.Fatalf("acquired what redsync holds: %v %v", ok, err)
	}
	if owner, err := client.Get(t.Context(), "lock:shared").Result(); owner != mutex.Value() || err != nil {
		t.Fatalf("the proxy says the owner is %q, redsync's token is %q (%v)", owner, mutex.Value(), err)
	}
	if ok, err := mutex.Unlock(); !ok || err != nil {
		t.Fatalf("redsync unlocks: %v %v", ok, err)
	}
	mustAcquire(t, client, "lock:shared", "token-of-the-proxied", longTTL)
	c.waitHeld(t, "lock:shared", "token-of-the-proxied")
	if err := mutex.TryLock(); err == nil {
		t.Fatal("redsync acquired what a client of the proxy holds")
	}
	mustRelease(t, client, "lock:shared", "token-of-the-proxied")

	section := &criticalSection{counter: c.upstream.direct, key: "counter"}
	const each, turns = 4, 8
	var all []contender
	for i := range each {
		all = append(all, tokenContender(client, "lock:shared", fmt.Sprint("proxied", i)), redsyncContender(direct, "lock:shared"))
	}
	contend(t, section, all, turns)
	section.check(t, 2*each*turns)
	c.waitGone(t, "lock:shared")
}

// TestReleaseByHashOnSomeMastersOnly: masters come to know a script at their
// own pace, through other proxies or direct clients. However many of them know
// the one that a client names by its hash, the client's ordinary way of asking
// (by hash, and by text if that is unknown) must release its lock.
func TestReleaseByHashOnSomeMastersOnly(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	for known := range masterCount + 1 {
		t.Run(fmt.Sprint(known, " of 5 know it"), func(t *testing.T) {
			script := redis.NewScript(fmt.Sprintf("-- %d\n%s", known, releaseScripts["one line"]))
			for _, master := range c.masters[:known] {
				if err := master.direct.ScriptLoad(t.Context(), fmt.Sprintf("-- %d\n%s", known, releaseScripts["one line"])).Err(); err != nil {
					t.Fatal(err)
				}
			}
			mustAcquire(t, client, "lock:hash", "token-of-the-holder-1", longTTL)
			c.waitHeld(t, "lock:hash", "token-of-the-holder-1")
			n, err := script.Run(t.Context(), client, []string{"lock:hash"}, "token-of-the-holder-1").Int()
			if n != 1 || err != nil {
				t.Errorf("the release answers %d, %v; want 1", n, err)
			}
			c.waitGone(t, "lock:hash")
		})
	}
}
