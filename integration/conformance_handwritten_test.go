package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// handwritten is lock code as one finds it in applications, by hand and
// without a library.
type handwritten struct {
	keys []string
	// proxies is through how many of them its clients go. Values that two
	// clients share are safe only through one.
	proxies  int
	protocol int // 0: the client's own choice
	// holder is one client of the lock, which enters and leaves it again and
	// again.
	holder func(client *redis.Client, name string) contender
}

// handwrittenTTL is in milliseconds, as scripts take it.
const handwrittenTTL = 60_000

// TestHandwrittenLocks: every pattern keeps its lock on a quorum while it is
// held, refuses a second client, leaves nothing behind, and lets one of many
// contending clients in at a time.
func TestHandwrittenLocks(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: []string{"lock:*"}})
	proxies := []*proxyProcess{c.proxy, c.addProxy(t, proxyOptions{rules: []string{"lock:*"}})}
	for name, pattern := range handwrittenLocks {
		t.Run(name, func(t *testing.T) {
			var clients []*redis.Client
			for _, proxy := range proxies[:max(1, pattern.proxies)] {
				client := redis.NewClient(&redis.Options{Addr: proxy.addr(), Protocol: pattern.protocol, MaxRetries: -1,
					ReadTimeout: patience, PoolSize: 100})
				t.Cleanup(func() { client.Close() })
				clients = append(clients, client)
			}
			pattern.live(t, c, clients)
			const contenders, turns = 20, 5
			var all []contender
			for i := range contenders {
				all = append(all, pattern.holder(clients[i%len(clients)], fmt.Sprintf("client-%d", i)))
			}
			section := &criticalSection{counter: c.upstream.direct, key: "counter of " + name}
			contend(t, section, all, turns)
			section.check(t, contenders*turns)
			pattern.waitOn(t, c, 0, 0)
		})
	}
}

// live takes one lock through its life with two clients.
func (h handwritten) live(t *testing.T, c *cluster, clients []*redis.Client) {
	t.Helper()
	ctx := t.Context()
	first, second := h.holder(clients[0], "the-first-client"), h.holder(clients[len(clients)-1], "the-second-client")
	take := func(client contender, want bool) {
		t.Helper()
		if ok, err := client.take(ctx); ok != want || err != nil {
			t.Fatalf("taking it: %v %v, want %v", ok, err, want)
		}
	}
	give := func(client contender) {
		t.Helper()
		if err := client.give(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		take(first, true)
		h.waitOn(t, c, quorum, masterCount)
		take(second, false)
		give(first)
		h.waitOn(t, c, 0, 0)
		take(second, true)
		h.waitOn(t, c, quorum, masterCount)
		give(second)
		h.waitOn(t, c, 0, 0)
	}
}

// waitOn waits until at least so many and at most so many masters have each
// key, and wants none of them on the upstream.
func (h handwritten) waitOn(t *testing.T, c *cluster, least, most int) {
	t.Helper()
	for _, key := range h.keys {
		waitFor(t, key, func() error {
			count := 0
			for _, master := range c.masters {
				if present(t.Context(), master, key) {
					count++
				}
			}
			if count < least || count > most {
				return fmt.Errorf("%d masters have it, want %d to %d", count, least, most)
			}
			return nil
		})
		if present(t.Context(), c.upstream, key) {
			t.Errorf("%s is on the upstream", key)
		}
	}
}

// TestTimestampLockTakenOver: of several clients that find a timestamp lock
// expired and swap their own time in, at most one may think that it has it.
// That is what GETSET is for: who gets back another time than an expired one
// has lost.
func TestTimestampLockTakenOver(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	proxies := []*proxyProcess{c.proxy, c.addProxy(t, proxyOptions{})}
	for through := 1; through <= len(proxies); through++ {
		t.Run(fmt.Sprint("through ", through), func(t *testing.T) {
			const claimants, rounds = 6, 150
			var clients []*redis.Client
			for _, proxy := range proxies[:through] {
				clients = append(clients, proxy.client(t))
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

// raceForTimestampLock returns who think that they have taken the expired
// lock over.
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
			if err != nil && !noQuorum(err) { // who is told that nobody knows has not got it
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

// TestWatchdogKeepsItsLock: a lock that its holder renews outlives its TTL
// many times, and ends soon after its holder does.
func TestWatchdogKeepsItsLock(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	client := c.proxy.client(t)
	const key, ttl = "lock:watched", 3 * time.Second
	held := newWatchdogLock(client, key, "the-living-client", ttl)
	held.every = ttl / 30 // it may be late by nearly the whole TTL
	if ok, err := held.take(t.Context()); !ok || err != nil {
		t.Fatalf("taking it: %v %v", ok, err)
	}
	other := newWatchdogLock(client, key, "the-waiting-client", ttl)
	for end := time.Now().Add(3 * ttl); time.Now().Before(end); pause(t.Context(), 20*time.Millisecond) {
		if ok, err := other.take(t.Context()); ok || err != nil {
			t.Fatalf("another client takes what is renewed: %v %v", ok, err)
		}
	}
	c.waitHeld(t, key, held.token)
	held.stop()
	waitFor(t, "nobody renews it any more", func() error {
		ok, err := other.take(t.Context())
		if err == nil && !ok {
			err = errors.New("it is still held")
		}
		return err
	})
	c.waitHeld(t, key, other.token)
	if err := other.give(t.Context()); err != nil {
		t.Error(err)
	}
	c.waitGone(t, key)
}

// TestReentrantCounter: the holder enters as often as it likes, and the lock
// is free when it has left as often.
func TestReentrantCounter(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	first, second := c.proxy.client(t), c.addProxy(t, proxyOptions{}).client(t)
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
		// Through the other proxy every other time: the count is the masters'.
		client := []*redis.Client{first, second}[i%2]
		n, err := client.Eval(t.Context(), leaveCounted, []string{key}, "owner-of-the-lock-1", handwrittenTTL).Int()
		if want := depth - 1 - i; n != want || err != nil {
			t.Fatalf("leaving it is answered %d %v, want %d", n, err, want)
		}
	}
	handwritten{keys: []string{key}}.waitOn(t, c, 0, 0)
	if n := enter(second, "owner-of-the-lock-2"); n != 1 {
		t.Fatalf("entering what is free is answered %d", n)
	}
}

// settledBy tells a client that is surprised to have lost its lock.
func settledBy(held bool, err error) error {
	if err == nil && !held {
		err = errors.New("the lock was no longer its own")
	}
	return err
}

// evalBool runs a script whose true is 1 or OK and whose false is 0 or nil.
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
