package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// handwritten is lock code that applications write by hand, without a library.
type handwritten struct {
	keys []string
	// proxies is the number of proxies that the clients use. Values that two clients share
	// are safe only through one proxy.
	proxies  int
	protocol int // 0: the client's own choice
	// holder makes one client of the lock, which enters and leaves it again and again.
	holder func(client *redis.Client, name string) rig.Contender
}

// handwrittenTTL is in milliseconds, for scripts.
const handwrittenTTL = 60_000

// TestHandwrittenLocks: every pattern keeps its lock on a quorum while it is held, refuses
// a second client, and leaves nothing behind. It lets in only one of many contending
// clients at a time.
func TestHandwrittenLocks(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: []string{"lock:*"}})
	proxies := []*rig.Proxy{c.Proxy, c.AddProxy(t, rig.Options{Rules: []string{"lock:*"}})}
	for name, pattern := range handwrittenLocks {
		t.Run(name, func(t *testing.T) {
			var clients []*redis.Client
			for _, proxy := range proxies[:max(1, pattern.proxies)] {
				client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), Protocol: pattern.protocol, MaxRetries: -1,
					ReadTimeout: rig.Patience, PoolSize: 100})
				t.Cleanup(func() { client.Close() })
				clients = append(clients, client)
			}
			pattern.live(t, c, clients)
			const contenders, turns = 20, 5
			var all []rig.Contender
			for i := range contenders {
				all = append(all, pattern.holder(clients[i%len(clients)], fmt.Sprintf("client-%d", i)))
			}
			rig.Contend(t, name, all, turns)
			pattern.waitOn(t, c, 0, 0)
		})
	}
}

// live takes one lock through its whole life with two clients.
func (h handwritten) live(t *testing.T, c *rig.Cluster, clients []*redis.Client) {
	t.Helper()
	ctx := t.Context()
	first, second := h.holder(clients[0], "the-first-client"), h.holder(clients[len(clients)-1], "the-second-client")
	take := func(client rig.Contender, want bool) {
		t.Helper()
		if ok, err := client.Take(ctx); ok != want || err != nil {
			t.Fatalf("taking it: %v %v, want %v", ok, err, want)
		}
	}
	give := func(client rig.Contender) {
		t.Helper()
		if err := client.Give(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		take(first, true)
		h.waitOn(t, c, rig.Quorum, rig.MasterCount)
		take(second, false)
		give(first)
		h.waitOn(t, c, 0, 0)
		take(second, true)
		h.waitOn(t, c, rig.Quorum, rig.MasterCount)
		give(second)
		h.waitOn(t, c, 0, 0)
	}
}

// waitOn waits until each key is on at least least and at most most masters. It fails the
// test if a key is on the upstream.
func (h handwritten) waitOn(t *testing.T, c *rig.Cluster, least, most int) {
	t.Helper()
	for _, key := range h.keys {
		rig.WaitFor(t, key, func() error {
			count := 0
			for _, master := range c.Masters {
				if present(t.Context(), master, key) {
					count++
				}
			}
			if count < least || count > most {
				return fmt.Errorf("%d masters have it, want %d to %d", count, least, most)
			}
			return nil
		})
		if present(t.Context(), c.Upstream, key) {
			t.Errorf("%s is on the upstream", key)
		}
	}
}

// TestTimestampLockTakenOver: several clients find an expired timestamp lock and put their
// own time into it by GETSET. At most one may believe that it has the lock: a client that
// gets back a time that has not expired has lost.
func TestTimestampLockTakenOver(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	proxies := []*rig.Proxy{c.Proxy, c.AddProxy(t, rig.Options{})}
	for through := 1; through <= len(proxies); through++ {
		t.Run(fmt.Sprint("through ", through), func(t *testing.T) {
			const claimants, rounds = 6, 150
			var clients []*redis.Client
			for _, proxy := range proxies[:through] {
				clients = append(clients, proxy.Client(t))
			}
			taken := 0
			for round := range rounds {
				key := fmt.Sprintf("lock:stamp:%d:%d", through, round)
				if err := clients[0].Set(t.Context(), key, "1000000000.000001", 0).Err(); err != nil {
					t.Fatal(err)
				}
				winners := raceForTimestampLock(t, clients, key, claimants)
				if len(winners) > 1 {
					t.Fatalf("round %d: clients %v all think that they have it", round, winners)
				}
				taken += len(winners)
			}
			t.Logf("%d of %d expired locks were taken over", taken, rounds)
			if taken == 0 {
				t.Error("nobody ever gets an expired lock")
			}
		})
	}
}

// raceForTimestampLock returns the clients that believe they have taken over the expired
// lock.
func raceForTimestampLock(t *testing.T, clients []*redis.Client, key string, claimants int) []int {
	t.Helper()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		winners []int
	)
	start := make(chan struct{})
	for i := range claimants {
		wg.Go(func() {
			<-start
			ok, err := (&timestampLock{client: clients[i%len(clients)], key: key, id: i}).take(t.Context())
			if err != nil && !rig.NoQuorum(err) { // without a quorum the client has not got the lock
				t.Errorf("client %d: %v", i, err)
			}
			if ok {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, i)
			}
		})
	}
	close(start)
	wg.Wait()
	return winners
}

// TestWatchdogKeepsItsLock: a lock that its holder renews lasts longer than its TTL. It ends
// soon after its holder.
func TestWatchdogKeepsItsLock(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	const key, ttl = "lock:watched", 8 * time.Second
	held := newWatchdogLock(client, key, "the-living-client", ttl)
	held.every = ttl / 30 // so a renewal may be late by nearly the whole TTL
	if ok, err := held.take(t.Context()); !ok || err != nil {
		t.Fatalf("taking it: %v %v", ok, err)
	}
	other := newWatchdogLock(client, key, "the-waiting-client", ttl)
	for end := time.Now().Add(ttl + ttl/2); time.Now().Before(end); rig.Pause(t.Context(), 20*time.Millisecond) {
		// On a busy machine too few masters may answer in time.
		if ok, err := other.take(t.Context()); ok || err != nil && !rig.NoQuorum(err) {
			t.Fatalf("another client takes a lock that its holder renews: %v %v", ok, err)
		}
	}
	c.WaitHeld(t, key, held.token)
	held.stop()
	rig.WaitFor(t, "nobody renews it any more", func() error {
		ok, err := other.take(t.Context())
		if err == nil && !ok {
			err = errors.New("it is still held")
		}
		return err
	})
	c.WaitHeld(t, key, other.token)
	if err := other.give(t.Context()); err != nil {
		t.Error(err)
	}
	c.WaitGone(t, key)
}

// TestReentrantCounter: the holder may enter any number of times. The lock is free after it
// has left as many times.
func TestReentrantCounter(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	first, second := c.Proxy.Client(t), c.AddProxy(t, rig.Options{}).Client(t)
	const key, depth = "lock:entered", 7
	enter := func(client *redis.Client, owner string) int {
		t.Helper()
		n, err := client.Eval(t.Context(), enterCounted, []string{key}, owner, handwrittenTTL).Int()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i := range depth {
		if n := enter(first, "owner-of-the-lock-1"); n != i+1 {
			t.Fatalf("entering it again is answered %d, want %d", n, i+1)
		}
		if n := enter(second, "owner-of-the-lock-2"); n != 0 {
			t.Fatalf("another client enters: %d", n)
		}
	}
	for i := range depth {
		// Every other time goes through the other proxy: the masters keep the count.
		client := []*redis.Client{first, second}[i%2]
		n, err := client.Eval(t.Context(), leaveCounted, []string{key}, "owner-of-the-lock-1", handwrittenTTL).Int()
		if want := depth - 1 - i; n != want || err != nil {
			t.Fatalf("leaving it is answered %d %v, want %d", n, err, want)
		}
	}
	handwritten{keys: []string{key}}.waitOn(t, c, 0, 0)
	if n := enter(second, "owner-of-the-lock-2"); n != 1 {
		t.Fatalf("entering the free lock is answered %d", n)
	}
}

// settledBy returns err, or an error for a client that finds its lock lost.
func settledBy(held bool, err error) error {
	if err == nil && !held {
		err = errors.New("the lock was no longer its own")
	}
	return err
}

// evalBool runs a script that returns 1 or OK for true, and 0 or nil for false.
func evalBool(ctx context.Context, client *redis.Client, script *redis.Script, keys []string, argv ...any) (bool, error) {
	reply, err := script.Run(ctx, client, keys, argv...).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil:
		return false, err
	}
	return reply == int64(1) || reply == "OK" || reply == true, nil
}
