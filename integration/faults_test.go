package integration

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestTwoOfFiveMastersDead: locks go on.
func TestTwoOfFiveMastersDead(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	mustAcquire(t, client, "lock:before", "token-before-the-crash", longTTL)
	c.waitHeld(t, "lock:before", "token-before-the-crash")
	c.masters[0].crash()
	c.masters[3].crash()
	for i := range 20 {
		key, token := fmt.Sprintf("lock:%d", i), fmt.Sprintf("token-number-%08d", i)
		mustAcquire(t, client, key, token, longTTL)
		if ok, err := acquire(t.Context(), client, key, "token-of-another", longTTL); ok || err != nil {
			t.Fatalf("a second client with two masters dead: %v %v", ok, err)
		}
		if owner, err := client.Get(t.Context(), key).Result(); owner != token || err != nil {
			t.Fatalf("the owner is %q, %v", owner, err)
		}
		if ok, err := client.Expire(t.Context(), key, 2*longTTL).Result(); !ok || err != nil {
			t.Fatalf("extending: %v %v", ok, err)
		}
		mustRelease(t, client, key, token)
		c.waitGone(t, key)
	}
	if owner, err := client.Get(t.Context(), "lock:before").Result(); owner != "token-before-the-crash" || err != nil {
		t.Fatalf("the lock from before has the owner %q, %v", owner, err)
	}
	mustRelease(t, client, "lock:before", "token-before-the-crash")
}

// TestThreeOfFiveMastersDead: nobody can know, and the client is told so,
// whatever it asked; and what is not a lock goes on.
func TestThreeOfFiveMastersDead(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	mustAcquire(t, client, "lock:kept", "token-before-the-crash", longTTL)
	c.waitHeld(t, "lock:kept", "token-before-the-crash")
	for _, i := range []int{0, 2, 4} {
		c.masters[i].crash()
	}
	ctx := t.Context()
	for _, command := range [][]any{
		{"SET", "lock:new", "token-after-the-crash", "NX", "PX", 60000},
		{"SETNX", "lock:new", "token-after-the-crash"},
		{"GET", "lock:kept"},
		{"PTTL", "lock:kept"},
		{"EXPIRE", "lock:kept", 100},
		{"DEL", "lock:kept"},
		{"GETSET", "lock:kept", "token-after-the-crash"},
		{"EVAL", "return redis.call('del', KEYS[1])", 1, "lock:kept"},
		{"HSET", "lock:hash", "f", "v"},
	} {
		if err := client.Do(ctx, command...).Err(); !noQuorum(err) {
			t.Errorf("%v with three masters dead answers %v, want QUORUMLOST", command, err)
		}
	}
	if err := client.Set(ctx, "plain", "value", 0).Err(); err != nil {
		t.Errorf("a plain SET on the upstream: %v", err)
	}
	for _, master := range []*redisServer{c.masters[1], c.masters[3]} {
		waitFor(t, "no stray grant", func() error {
			if value, ok := master.value(t, "lock:new"); ok {
				return fmt.Errorf("%s holds %q", master.name, value)
			}
			return nil
		})
	}
}

// TestPausedMasterDelaysNobody: a master that hangs is not waited for. At twenty
// seconds of master_timeout, a run that waited for it even a few times would
// not end within the test's patience.
func TestPausedMasterDelaysNobody(t *testing.T) {
	c := startCluster(t, proxyOptions{masterTimeout: 20 * time.Second, restartDelay: 30 * time.Second})
	client := c.proxy.client(t)
	mustAcquire(t, client, "lock:warm", "token-to-warm-up-with", longTTL)
	mustRelease(t, client, "lock:warm", "token-to-warm-up-with")
	for _, master := range c.masters[:2] {
		master.pause()
		defer master.resume()
	}
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			for i := range 50 {
				key, token := fmt.Sprintf("lock:%d:%d", worker, i), fmt.Sprintf("token-%d-%010d", worker, i)
				if ok, err := acquire(t.Context(), client, key, token, longTTL); err != nil || !ok {
					t.Errorf("acquire with two masters paused: %v %v", ok, err)
					return
				}
				if ok, err := release(t.Context(), client, key, token); err != nil || !ok {
					t.Errorf("release with two masters paused: %v %v", ok, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("lock cycles wait for paused masters")
	}
	for _, master := range c.masters[:2] {
		master.resume()
	}
	for _, key := range []string{"lock:0:0", "lock:9:49", "lock:5:25"} {
		c.waitGone(t, key)
	}
}

// TestLateGrantsAreUndone: masters that were away during an acquire execute
// it when they come back, and must not keep what nobody holds.
func TestLateGrantsAreUndone(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	mustAcquire(t, client, "lock:warm", "token-to-warm-up-with", longTTL)
	mustRelease(t, client, "lock:warm", "token-to-warm-up-with")
	for _, master := range c.masters[2:] {
		master.pause()
		defer master.resume()
	}
	ok, err := acquire(t.Context(), client, "lock:late", "token-nobody-will-have", longTTL)
	if ok || !noQuorum(err) {
		t.Errorf("acquire with three masters paused: %v %v, want QUORUMLOST", ok, err)
	}
	for _, master := range c.masters[2:] {
		master.resume()
	}
	c.waitGone(t, "lock:late")
	mustAcquire(t, client, "lock:late", "token-of-the-next-one", longTTL)
	c.waitHeld(t, "lock:late", "token-of-the-next-one")
	mustRelease(t, client, "lock:late", "token-of-the-next-one")
	c.waitGone(t, "lock:late")
}

// TestReleaseReachesMastersThatWereAway: what a paused master missed is
// delivered when it is back.
func TestReleaseReachesMastersThatWereAway(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	for name, give := range map[string]func(key, token string) error{
		"compare and delete": func(key, token string) error {
			ok, err := release(t.Context(), client, key, token)
			if err == nil && !ok {
				err = errors.New("refused")
			}
			return err
		},
		"DEL": func(key, _ string) error { return client.Del(t.Context(), key).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			const token = "token-that-is-released"
			key := "lock:" + name[:3]
			mustAcquire(t, client, key, token, 10*time.Minute)
			waitFor(t, "all hold it", func() error {
				if n := c.holders(t, key, token); n != masterCount {
					return fmt.Errorf("%d do", n)
				}
				return nil
			})
			for _, master := range c.masters[:2] {
				master.pause()
				defer master.resume()
			}
			if err := give(key, token); err != nil {
				t.Errorf("release with two masters paused: %v", err)
			}
			for _, master := range c.masters[:2] {
				master.resume()
			}
			c.waitGone(t, key)
		})
	}
}

// TestMasterComesBack: a master that was killed takes part again.
func TestMasterComesBack(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	mustAcquire(t, client, "lock:one", "token-number-00000001", longTTL)
	c.masters[1].crash()
	mustRelease(t, client, "lock:one", "token-number-00000001")
	c.masters[1].start(t)
	waitFor(t, "the master is used again", func() error {
		mustAcquire(t, client, "lock:two", "token-number-00000002", longTTL)
		_, held := c.masters[1].value(t, "lock:two")
		mustRelease(t, client, "lock:two", "token-number-00000002")
		if !held {
			return errors.New("it got no lock yet")
		}
		return nil
	})
	c.waitGone(t, "lock:two")
}

// TestUpstreamDown: locks do not need the upstream, and the upstream comes back.
func TestUpstreamDown(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	c.upstream.crash()
	client := c.proxy.client(t)
	mustAcquire(t, client, "lock:alone", "token-without-upstream", longTTL)
	mustRelease(t, client, "lock:alone", "token-without-upstream")
	if err := client.Get(t.Context(), "plain").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("GET of a plain key with the upstream dead: %v, want an error", err)
	}
	c.upstream.start(t)
	waitFor(t, "the upstream serves again", func() error {
		return client.Set(t.Context(), "plain", "value", 0).Err()
	})
}
