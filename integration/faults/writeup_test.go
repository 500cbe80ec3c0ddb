package faults

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"
)

// The tests of this file are the examples in every description of Redlock. The TTL frees a
// lock. A late release must not free another client's lock. A majority that answers too
// late is none.

// TestTTLFreesTheLock: a holder that dies blocks nobody for longer than its TTL.
func TestTTLFreesTheLock(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	const ttl = 1500 * time.Millisecond
	taken := time.Now()
	rig.MustAcquire(t, client, "lock:lease", "token-of-the-dead-one", ttl)
	rig.MustAcquire(t, client, "lock:lease", "token-of-the-next-one", rig.LongTTL)
	if after := time.Since(taken); after < ttl-history.LostToDrift(ttl) {
		t.Fatalf("the lock was granted again after only %s", after)
	}
	if ok, err := rig.Release(t.Context(), client, "lock:lease", "token-of-the-dead-one"); ok || err != nil {
		t.Fatalf("the dead holder's release: %v %v", ok, err)
	}
	c.WaitHeld(t, "lock:lease", "token-of-the-next-one")
	rig.MustRelease(t, client, "lock:lease", "token-of-the-next-one")
}

// TestLateReleaseByTheOldOwner: the old owner wakes up after its lock ended and another
// client has taken it.
func TestLateReleaseByTheOldOwner(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	prepare := func(t *testing.T, key string) {
		rig.MustAcquire(t, client, key, "token-of-the-old-owner", 300*time.Millisecond)
		rig.MustAcquire(t, client, key, "token-of-the-new-owner", rig.LongTTL)
	}
	stillHeld := func(t *testing.T, key string) {
		t.Helper()
		c.WaitHeld(t, key, "token-of-the-new-owner")
		if owner, err := client.Get(t.Context(), key).Result(); owner != "token-of-the-new-owner" || err != nil {
			t.Errorf("the owner is %q, %v", owner, err)
		}
	}
	t.Run("compare and delete", func(t *testing.T) {
		prepare(t, "lock:cad")
		if ok, err := rig.Release(t.Context(), client, "lock:cad", "token-of-the-old-owner"); ok || err != nil {
			t.Errorf("the old owner's release: %v %v", ok, err)
		}
		stillHeld(t, "lock:cad")
	})
	t.Run("compare and expire", func(t *testing.T) {
		prepare(t, "lock:cae")
		const extend = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`
		n, err := client.Eval(t.Context(), extend, []string{"lock:cae"}, "token-of-the-old-owner", 1).Int()
		if n != 0 || err != nil {
			t.Errorf("the old owner's extension: %v %v", n, err)
		}
		stillHeld(t, "lock:cae")
	})
	t.Run("GET, then DEL, by a careful client", func(t *testing.T) {
		prepare(t, "lock:get")
		owner, err := client.Get(t.Context(), "lock:get").Result()
		if err != nil || owner != "token-of-the-new-owner" {
			t.Errorf("GET tells the old owner %q, %v", owner, err)
		}
		stillHeld(t, "lock:get")
	})
	// A plain DEL compares nothing. It deletes anybody's lock, here as on one Redis. The
	// proxy cannot make a client safer that releases in this way.
	t.Run("plain DEL deletes another's lock, as on one Redis", func(t *testing.T) {
		prepare(t, "lock:del")
		if n, err := client.Del(t.Context(), "lock:del").Result(); n != 1 || err != nil {
			t.Errorf("DEL answers %d, %v", n, err)
		}
		c.WaitGone(t, "lock:del")
	})
}

// TestGrantsSlowerThanTheTTL: three of five grants arrive after the granted TTL has run
// out. The lock is not granted, and no copy of it may stay.
func TestGrantsSlowerThanTheTTL(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	var addresses []string
	var links []*rig.Link
	for _, master := range c.Masters {
		link := rig.StartLink(t, master.Addr())
		links = append(links, link)
		addresses = append(addresses, "redis://"+link.Addr())
	}
	proxy := c.AddProxy(t, rig.Options{Masters: addresses, MasterTimeout: 4 * time.Second, RestartDelay: 10 * time.Second, RetryCount: 1})
	client := proxy.Client(t)
	rig.MustAcquire(t, client, "lock:warm", "token-to-warm-up-with", rig.LongTTL)
	rig.MustRelease(t, client, "lock:warm", "token-to-warm-up-with")

	for i := range 3 {
		links[i].Delay(700 * time.Millisecond)
		key := fmt.Sprintf("lock:slow%d", i)
		if i < 2 { // a minority: the other masters are in time, perhaps at a later try
			rig.MustAcquire(t, client, key, "token-that-was-in-time", 300*time.Millisecond)
			continue
		}
		ok, err := rig.Acquire(t.Context(), client, key, "token-that-took-too-long", 300*time.Millisecond)
		if ok {
			t.Fatal("a lock was granted by answers that came after it had expired")
		}
		if err != nil && !rig.NoQuorum(err) {
			t.Fatalf("three slow masters of five: %v, want a refusal or QUORUMLOST", err)
		}
		c.WaitGone(t, key)
	}
	// With a TTL longer than their delay the same masters do grant.
	rig.MustAcquire(t, client, "lock:patient", "token-with-enough-time", rig.LongTTL)
	c.WaitHeld(t, "lock:patient", "token-with-enough-time")
	for _, link := range links {
		link.Delay(0)
	}
	rig.MustRelease(t, client, "lock:patient", "token-with-enough-time")
	c.WaitGone(t, "lock:patient")
}
