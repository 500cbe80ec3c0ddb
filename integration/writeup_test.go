package integration

import (
	"fmt"
	"testing"
	"time"
)

// The tests of this file are the tables that every description of Redlock
// walks through: the TTL frees, a late release must not free another's lock,
// and a majority that answers too late is none.

// TestTTLFreesTheLock: a holder that dies blocks nobody for longer than it said.
func TestTTLFreesTheLock(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	const ttl = 1500 * time.Millisecond
	taken := time.Now()
	mustAcquire(t, client, "lock:lease", "token-of-the-dead-one", ttl)
	mustAcquire(t, client, "lock:lease", "token-of-the-next-one", longTTL)
	if after := time.Since(taken); after < ttl-lostToDrift(ttl) {
		t.Fatalf("it was granted again after %s", after)
	}
	if ok, err := release(t.Context(), client, "lock:lease", "token-of-the-dead-one"); ok || err != nil {
		t.Fatalf("the dead one releases: %v %v", ok, err)
	}
	c.waitHeld(t, "lock:lease", "token-of-the-next-one")
	mustRelease(t, client, "lock:lease", "token-of-the-next-one")
}

// TestLateReleaseByTheOldOwner: the old owner wakes up after its lock ended
// and another has it now.
func TestLateReleaseByTheOldOwner(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	prepare := func(t *testing.T, key string) {
		mustAcquire(t, client, key, "token-of-the-old-owner", 300*time.Millisecond)
		mustAcquire(t, client, key, "token-of-the-new-owner", longTTL)
	}
	stillHeld := func(t *testing.T, key string) {
		t.Helper()
		c.waitHeld(t, key, "token-of-the-new-owner")
		if owner, err := client.Get(t.Context(), key).Result(); owner != "token-of-the-new-owner" || err != nil {
			t.Errorf("the owner is %q, %v", owner, err)
		}
	}
	t.Run("compare and delete", func(t *testing.T) {
		prepare(t, "lock:cad")
		if ok, err := release(t.Context(), client, "lock:cad", "token-of-the-old-owner"); ok || err != nil {
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
	// A plain DEL compares nothing. It deletes whoever's lock, here as on one
	// Redis: a client that releases so is not made safer than it is.
	t.Run("plain DEL deletes another's lock, as on one Redis", func(t *testing.T) {
		prepare(t, "lock:del")
		if n, err := client.Del(t.Context(), "lock:del").Result(); n != 1 || err != nil {
			t.Errorf("DEL answers %d, %v", n, err)
		}
		c.waitGone(t, "lock:del")
	})
}

// TestGrantsSlowerThanTheTTL: three of five grants arrive when what they
// granted has already expired. That is no lock, and nothing of it may stay.
func TestGrantsSlowerThanTheTTL(t *testing.T) {
	c := startServers(t)
	var addresses []string
	var links []*slowLink
	for _, master := range c.masters {
		link := startSlowLink(t, master.addr())
		links = append(links, link)
		addresses = append(addresses, "redis://"+link.addr())
	}
	proxy := c.addProxy(t, proxyOptions{masters: addresses, masterTimeout: 4 * time.Second, retryCount: 1})
	client := proxy.client(t)
	mustAcquire(t, client, "lock:warm", "token-to-warm-up-with", longTTL)
	mustRelease(t, client, "lock:warm", "token-to-warm-up-with")

	for i := range 3 {
		links[i].delay(700 * time.Millisecond)
		key := fmt.Sprintf("lock:slow%d", i)
		if i < 2 { // a minority: the others are in time, if not at the first try
			mustAcquire(t, client, key, "token-that-was-in-time", 300*time.Millisecond)
			continue
		}
		ok, err := acquire(t.Context(), client, key, "token-that-took-too-long", 300*time.Millisecond)
		if ok {
			t.Fatal("a lock was granted by answers that came after it had expired")
		}
		t.Logf("three slow masters of five: acquired %v, error %v", ok, err)
		c.waitGone(t, key)
	}
	// With a TTL that outlives the slow answers the same masters do grant.
	mustAcquire(t, client, "lock:patient", "token-with-enough-time", longTTL)
	c.waitHeld(t, "lock:patient", "token-with-enough-time")
	for _, link := range links {
		link.delay(0)
	}
	mustRelease(t, client, "lock:patient", "token-with-enough-time")
	c.waitGone(t, "lock:patient")
}
