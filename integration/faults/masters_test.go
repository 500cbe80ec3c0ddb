package faults

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// TestTwoOfFiveMastersDead: locks go on with two masters dead.
func TestTwoOfFiveMastersDead(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:before", "token-before-the-crash", rig.LongTTL)
	c.WaitHeld(t, "lock:before", "token-before-the-crash")
	c.Masters[0].Kill()
	c.Masters[3].Kill()
	for i := range 20 {
		key, token := fmt.Sprintf("lock:%d", i), fmt.Sprintf("token-number-%08d", i)
		rig.MustAcquire(t, client, key, token, rig.LongTTL)
		if ok, err := rig.Acquire(t.Context(), client, key, "token-of-another", rig.LongTTL); ok || err != nil {
			t.Fatalf("a second client with two masters dead: %v %v", ok, err)
		}
		if owner, err := client.Get(t.Context(), key).Result(); owner != token || err != nil {
			t.Fatalf("the owner is %q, %v", owner, err)
		}
		if ok, err := client.Expire(t.Context(), key, 2*rig.LongTTL).Result(); !ok || err != nil {
			t.Fatalf("extending: %v %v", ok, err)
		}
		rig.MustRelease(t, client, key, token)
		c.WaitGone(t, key)
	}
	if owner, err := client.Get(t.Context(), "lock:before").Result(); owner != "token-before-the-crash" || err != nil {
		t.Fatalf("the lock from before has the owner %q, %v", owner, err)
	}
	rig.MustRelease(t, client, "lock:before", "token-before-the-crash")
}

// TestThreeOfFiveMastersDead: without a quorum every lock command gets an error that says
// so. Commands on ordinary keys go on.
func TestThreeOfFiveMastersDead(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:kept", "token-before-the-crash", rig.LongTTL)
	c.WaitHeld(t, "lock:kept", "token-before-the-crash")
	for _, i := range []int{0, 2, 4} {
		c.Masters[i].Kill()
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
		if err := client.Do(ctx, command...).Err(); !rig.NoQuorum(err) {
			t.Errorf("%v with three masters dead answers %v, want QUORUMLOST", command, err)
		}
	}
	if err := client.Set(ctx, "plain", "value", 0).Err(); err != nil {
		t.Errorf("a plain SET on the upstream: %v", err)
	}
	for _, master := range []*rig.Server{c.Masters[1], c.Masters[3]} {
		rig.WaitFor(t, "no stray grant", func() error {
			if value, ok := master.Value(t, "lock:new"); ok {
				return fmt.Errorf("%s holds %q", master.Name, value)
			}
			return nil
		})
	}
}

// TestPausedMasterDelaysNobody: the proxy does not wait for a master that hangs. With a
// master_timeout of twenty seconds, a few such waits would exceed the test's Patience.
func TestPausedMasterDelaysNobody(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{MasterTimeout: 20 * time.Second, RestartDelay: 30 * time.Second})
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:warm", "token-to-warm-up-with", rig.LongTTL)
	rig.MustRelease(t, client, "lock:warm", "token-to-warm-up-with")
	for _, master := range c.Masters[:2] {
		master.Pause()
		defer master.Resume()
	}
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			for i := range 50 {
				key, token := fmt.Sprintf("lock:%d:%d", worker, i), fmt.Sprintf("token-%d-%010d", worker, i)
				if ok, err := rig.Acquire(t.Context(), client, key, token, rig.LongTTL); err != nil || !ok {
					t.Errorf("acquire with two masters paused: %v %v", ok, err)
					return
				}
				if ok, err := rig.Release(t.Context(), client, key, token); err != nil || !ok {
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
	case <-time.After(rig.Patience):
		t.Fatal("lock cycles wait for paused masters")
	}
	for _, master := range c.Masters[:2] {
		master.Resume()
	}
	for _, key := range []string{"lock:0:0", "lock:9:49", "lock:5:25"} {
		c.WaitGone(t, key)
	}
}

// TestLateGrantsAreUndone: masters that were away during an acquire execute it when they
// come back. They must not keep a lock that nobody holds.
func TestLateGrantsAreUndone(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:warm", "token-to-warm-up-with", rig.LongTTL)
	rig.MustRelease(t, client, "lock:warm", "token-to-warm-up-with")
	for _, master := range c.Masters[2:] {
		master.Pause()
		defer master.Resume()
	}
	ok, err := rig.Acquire(t.Context(), client, "lock:late", "token-nobody-will-have", rig.LongTTL)
	if ok || !rig.NoQuorum(err) {
		t.Errorf("acquire with three masters paused: %v %v, want QUORUMLOST", ok, err)
	}
	for _, master := range c.Masters[2:] {
		master.Resume()
	}
	c.WaitGone(t, "lock:late")
	rig.MustAcquire(t, client, "lock:late", "token-of-the-next-one", rig.LongTTL)
	c.WaitHeld(t, "lock:late", "token-of-the-next-one")
	rig.MustRelease(t, client, "lock:late", "token-of-the-next-one")
	c.WaitGone(t, "lock:late")
}

// TestReleaseReachesMastersThatWereAway: a paused master gets a release that it missed when
// it is back.
func TestReleaseReachesMastersThatWereAway(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	for name, give := range map[string]func(key, token string) error{
		"compare and delete": func(key, token string) error {
			ok, err := rig.Release(t.Context(), client, key, token)
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
			rig.MustAcquire(t, client, key, token, 10*time.Minute)
			rig.WaitFor(t, "all hold it", func() error {
				if n := c.Holders(t, key, token); n != rig.MasterCount {
					return fmt.Errorf("%d do", n)
				}
				return nil
			})
			for _, master := range c.Masters[:2] {
				master.Pause()
				defer master.Resume()
			}
			if err := give(key, token); err != nil {
				t.Errorf("release with two masters paused: %v", err)
			}
			for _, master := range c.Masters[:2] {
				master.Resume()
			}
			c.WaitGone(t, key)
		})
	}
}

// TestMasterComesBack: a master that was killed votes again after its restart.
func TestMasterComesBack(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:one", "token-number-00000001", rig.LongTTL)
	c.Masters[1].Kill()
	rig.MustRelease(t, client, "lock:one", "token-number-00000001")
	c.Masters[1].Start(t)
	rig.WaitFor(t, "the master is used again", func() error {
		rig.MustAcquire(t, client, "lock:two", "token-number-00000002", rig.LongTTL)
		_, held := c.Masters[1].Value(t, "lock:two")
		rig.MustRelease(t, client, "lock:two", "token-number-00000002")
		if !held {
			return errors.New("it got no lock yet")
		}
		return nil
	})
	c.WaitGone(t, "lock:two")
}

// TestUpstreamDown: locks work while the upstream is down, and plain commands work again
// when it is back.
func TestUpstreamDown(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	c.Upstream.Kill()
	client := c.Proxy.Client(t)
	rig.MustAcquire(t, client, "lock:alone", "token-without-upstream", rig.LongTTL)
	rig.MustRelease(t, client, "lock:alone", "token-without-upstream")
	if err := client.Get(t.Context(), "plain").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOUPSTREAM ") {
		t.Errorf("GET of a plain key with the upstream dead: %v, want NOUPSTREAM", err)
	}
	c.Upstream.Start(t)
	rig.WaitFor(t, "the upstream serves again", func() error {
		return client.Set(t.Context(), "plain", "value", 0).Err()
	})
}
