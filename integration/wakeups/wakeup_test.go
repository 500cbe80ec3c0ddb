package wakeups

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// A release wakes the waiter, whichever proxies the two use.

// ruleOfLocks is the whole configuration that wake-ups need.
var ruleOfLocks = []string{"lock:*"}

const (
	// signalUnlock is python-redis-lock's: it pushes an element to a list.
	signalUnlock = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], 1000)
redis.call('del', KEYS[1])
return 0`
	trackedExtend = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local done = redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('GET', KEYS[1])
return done`
)

// TestUnlockWakesSubscribers: a message that a script publishes on the masters reaches
// every subscriber exactly once, whichever proxy each uses.
func TestUnlockWakesSubscribers(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: ruleOfLocks})
	other := c.AddProxy(t, rig.Options{Rules: ruleOfLocks})
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			key := fmt.Sprintf("lock:woken-%d", protocol)
			channel := rig.ChannelOf(key)
			// The clients of the other protocol may still be connected: they must not count.
			wide := fmt.Sprintf("redisson_*-%d}", protocol)
			near, far, pattern := c.Proxy.Talk(t, protocol), other.Talk(t, protocol), other.Talk(t, protocol)
			near.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
			far.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
			far.Ask("psubscribe "+wide+" 2", "PSUBSCRIBE", wide)
			pattern.Ask("psubscribe *"+key+"} 1", "PSUBSCRIBE", "*"+key+"}")
			holders := []rig.Conversation{c.Proxy.Talk(t, protocol), other.Talk(t, protocol)}
			const rounds = 20
			for round := range rounds {
				message := fmt.Sprint("free ", round)
				holders[round%2].Hold(key)
				holders[(round+1)%2].Unlock(key, message)
				near.Expect("message " + channel + " " + message)
				far.Expect("message " + channel + " " + message)
				far.Expect("pmessage " + wide + " " + channel + " " + message)
				pattern.Expect("pmessage *" + key + "} " + channel + " " + message)
			}
			// A plain PUBLISH goes through the upstream. It arrives once, too.
			holders[0].Ask("4", "PUBLISH", channel, "plain")
			near.Expect("message " + channel + " plain")
			far.Expect("message " + channel + " plain")
			far.Expect("pmessage " + wide + " " + channel + " plain")
			pattern.Expect("pmessage *" + key + "} " + channel + " plain")
			near.Ask("unsubscribe "+channel+" 0", "UNSUBSCRIBE", channel)
			holders[0].Hold(key)
			holders[0].Unlock(key, "late")
			near.Ask("PONG", "PING")
		})
	}
}

// TestSubscriberSeesReleaseAfterItsConfirmation runs the race of every waiter: it
// subscribes, tries once more, and then relies on the message.
func TestSubscriberSeesReleaseAfterItsConfirmation(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: ruleOfLocks, LogLevel: "warn"})
	other := c.AddProxy(t, rig.Options{Rules: ruleOfLocks, LogLevel: "warn"})
	waiter, tries, holder := c.Proxy.Talk(t, 2), c.Proxy.Talk(t, 2), other.Talk(t, 2)
	for round := range 100 {
		key := fmt.Sprint("lock:race-", round)
		channel := rig.ChannelOf(key)
		holder.Hold(key)
		released := make(chan error, 1)
		go func() {
			_, err := holder.Do("EVAL", rig.WakingUnlock, "2", key, channel, "owner-of-the-lock-1", "0")
			released <- err
		}()
		waiter.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
		held, err := tries.Do("EXISTS", key)
		if err != nil {
			t.Fatal(err)
		}
		if string(held) == ":1\r\n" {
			waiter.Expect("message " + channel + " 0")
		}
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if err := waiter.Send(rig.Encode("UNSUBSCRIBE", channel)); err != nil {
			t.Fatal(err)
		}
		for said := ""; !strings.HasPrefix(said, "unsubscribe "); {
			raw, err := waiter.Read() // the message may arrive although the waiter no longer needs it
			if err != nil {
				t.Fatal(err)
			}
			said = rig.Say(raw)
		}
	}
}

// TestSignalListWakesBlockedClients: BLPOP returns when a script fills the list.
func TestSignalListWakesBlockedClients(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: ruleOfLocks})
	other := c.AddProxy(t, rig.Options{Rules: ruleOfLocks})
	waiter, holder := c.Proxy.Talk(t, 2), other.Talk(t, 2)
	for round := range 20 {
		token := fmt.Sprintf("token-of-round-%04d", round)
		holder.Ask("OK", "SET", "lock:signalled", token, "NX", "EX", "60")
		if err := waiter.Send(rig.Encode("BLPOP", "lock-signal:signalled", "0")); err != nil {
			t.Fatal(err)
		}
		holder.Ask("0", "EVAL", signalUnlock, "2", "lock:signalled", "lock-signal:signalled", token)
		waiter.Expect("lock-signal:signalled 1")
		waiter.Ask("OK", "SET", "lock:signalled", token, "NX", "EX", "60")
		waiter.Ask("1", "EVAL", rig.CompareAndDeleteText, "1", "lock:signalled", token)
	}
}

// TestTrackingWakesWaiters: a client gets an invalidation for a lock key on release and on
// expiry. With NOLOOP a holder gets none for its own changes.
func TestTrackingWakesWaiters(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: ruleOfLocks})
	other := c.AddProxy(t, rig.Options{Rules: ruleOfLocks})
	for _, options := range [][]string{{"OPTOUT"}, {"OPTOUT", "NOLOOP"}} {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			key := fmt.Sprint("lock:tracked-", len(options))
			waiter, holder := c.Proxy.Talk(t, 3), other.Talk(t, 2)
			waiter.Ask("OK", append([]string{"CLIENT", "TRACKING", "ON"}, options...)...)
			for round := range 20 {
				token := fmt.Sprintf("token-of-holder-%04d", round)
				holder.Ask("OK", "EVAL", rig.TrackedLock, "1", key, token, "60000")
				waiter.Ask("-1", "EVAL", rig.TrackedLock, "1", key, "token-of-the-waiter-1", "60000")
				holder.Ask("1", "EVAL", rig.CompareAndDeleteText, "1", key, token)
				waiter.Expect("invalidate " + key)
			}
			// A master announces an expired lock when it notices the expiry.
			holder.Ask("OK", "EVAL", rig.TrackedLock, "1", key, "token-of-holder-last", "3000")
			waiter.Ask("-1", "EVAL", rig.TrackedLock, "1", key, "token-of-the-waiter-1", "60000")
			waiter.Expect("invalidate " + key)
		})
	}
	t.Run("own extensions", func(t *testing.T) {
		holder := c.Proxy.Talk(t, 3)
		holder.Ask("OK", "CLIENT", "TRACKING", "ON", "OPTOUT", "NOLOOP")
		const own, mine = "lock:own", "token-of-this-holder"
		holder.Ask("OK", "EVAL", rig.TrackedLock, "1", own, mine, "60000")
		for range 200 {
			holder.Ask("1", "EVAL", trackedExtend, "1", own, mine, "60000")
		}
		other.Talk(t, 2).Ask("1", "DEL", own)
		holder.Expect("invalidate " + own)
		holder.Ask("0", "EVAL", trackedExtend, "1", own, mine, "60000")
	})
}

// TestWakeUpsWithMastersAway: a minority of the masters is killed and comes back while
// clients wait.
func TestWakeUpsWithMastersAway(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: ruleOfLocks, RestartDelay: 4 * time.Second})
	const key = "lock:away"
	channel := rig.ChannelOf(key)
	waiter, tracking, holder := c.Proxy.Talk(t, 3), c.Proxy.Talk(t, 3), c.Proxy.Talk(t, 2)
	waiter.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
	tracking.Ask("OK", "CLIENT", "TRACKING", "ON", "NOLOOP")
	round := 0
	releases := func(when string) {
		t.Helper()
		for range 5 {
			round++
			message := fmt.Sprint(when, " ", round)
			rig.WaitFor(t, "the lock is taken "+when, func() error {
				reply, err := holder.Do("HSETNX", key, "owner-of-the-lock-1", "1")
				if err != nil {
					t.Fatal(err)
				}
				if string(reply) != ":1\r\n" {
					return fmt.Errorf("HSETNX says %q", reply)
				}
				return nil
			})
			tracking.Ask("1", "HEXISTS", key, "owner-of-the-lock-1")
			holder.Unlock(key, message)
			waiter.Expect("message " + channel + " " + message)
			tracking.Expect("invalidate " + key)
		}
	}
	releases("with all")
	c.Masters[0].Kill()
	c.Masters[3].Kill()
	releases("with three of five")
	c.Masters[0].Start(t)
	c.Masters[3].Start(t)
	releases("with two that are back")
}

// TestSubscribersAreToldOfGaps: if the proxy heard too few masters, a client may have
// missed its message. It must not wait on, so the proxy closes its connection.
func TestSubscribersAreToldOfGaps(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: ruleOfLocks})
	waiter := c.Proxy.Talk(t, 2)
	waiter.Ask("subscribe lock:gap 1", "SUBSCRIBE", "lock:gap")
	for _, master := range c.Masters[:rig.Quorum] {
		master.Kill()
	}
	for _, master := range c.Masters[:rig.Quorum] {
		master.Start(t)
	}
	if rest := waiter.ExpectEnd(t); len(rest) > 0 {
		t.Errorf("got %q, want the end of the connection", rest)
	}
}

// TestWaitingWithoutTheUpstream: wake-ups work while nothing listens at the upstream's
// address, and again when the upstream is back.
func TestWaitingWithoutTheUpstream(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	c.Upstream.Kill()
	c.Proxy = c.AddProxy(t, rig.Options{Rules: ruleOfLocks})
	other := c.AddProxy(t, rig.Options{Rules: ruleOfLocks})
	const key = "lock:alone"
	channel := rig.ChannelOf(key)
	for _, protocol := range []int{2, 3} {
		waiter, holder := c.Proxy.Talk(t, protocol), other.Talk(t, protocol)
		waiter.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
		holder.Hold(key)
		holder.Unlock(key, "0")
		waiter.Expect("message " + channel + " 0")
		published, err := holder.Do("PUBLISH", channel, "plain")
		if err != nil || !bytes.HasPrefix(published, []byte(":")) {
			t.Fatalf("PUBLISH: %q %v", published, err)
		}
		waiter.Expect("message " + channel + " plain")
		waiter.Ask("unsubscribe "+channel+" 0", "UNSUBSCRIBE")
		waiter.Ask("PONG", "PING")
	}
	tracking, holder, kept := c.Proxy.Talk(t, 3), other.Talk(t, 2), c.Proxy.Talk(t, 3)
	tracking.Ask("OK", "CLIENT", "TRACKING", "ON", "OPTOUT")
	holder.Ask("OK", "SET", key, "token-of-the-holder-1", "NX", "PX", "60000")
	tracking.Ask("token-of-the-holder-1", "GET", key)
	holder.Ask("1", "DEL", key)
	tracking.Expect("invalidate " + key)
	kept.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
	c.Upstream.Start(t)
	kept.Ask("OK", "SET", "greeting", "hello")
	if rest := kept.ExpectEnd(t); len(rest) > 0 {
		t.Fatalf("got %q, want the end of a connection whose subscriptions the upstream does not know", rest)
	}
	kept = c.Proxy.Talk(t, 3)
	kept.Ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
	if n, err := c.Upstream.Direct.Publish(t.Context(), channel, "from the upstream").Result(); err != nil || n != 1 {
		t.Fatalf("the upstream has %d subscribers (%v), want the one that has connected again", n, err)
	}
	kept.Expect("message " + channel + " from the upstream")
	tracking.Ask("hello", "GET", "greeting")
	if err := c.Upstream.Direct.Set(t.Context(), "greeting", "bye", 0).Err(); err != nil {
		t.Fatal(err)
	}
	tracking.Expect("invalidate greeting")
}
