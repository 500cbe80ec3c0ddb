package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// Waiting for a lock: what releases it, on whichever proxy, wakes the waiter.

// ruleOfLocks is all that wake-ups need to be configured.
var ruleOfLocks = []string{"lock:*"}

const (
	// wakingUnlock is how Redisson's unlock wakes waiters: with the deletion, in
	// one script. Its key and its channel are KEYS.
	wakingUnlock = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[2])
return 1`
	// signalUnlock is python-redis-lock's: an element in a list.
	signalUnlock = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], 1000)
redis.call('del', KEYS[1])
return 0`
	// trackedLock and trackedExtend are rueidislock's: the last GET has the
	// server remember that the client knows the key.
	trackedLock = `
local taken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
redis.call('GET', KEYS[1])
return taken`
	trackedExtend = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local done = redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('GET', KEYS[1])
return done`
	compareAndDeleteText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`
)

func channelOf(key string) string { return "redisson_lock__channel:{" + key + "}" }

// waiterWire is a raw connection whose replies a test spells out.
type waiterWire struct {
	*wire
	t *testing.T
}

func (p *proxyProcess) wire(t *testing.T, protocol int) waiterWire {
	t.Helper()
	return waiterWire{dialWire(t, p.addr(), protocol), t}
}

// ask sends a command and expects these words, as say writes them.
func (w waiterWire) ask(want string, args ...string) {
	w.t.Helper()
	if err := w.send(encode(args...)); err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
	w.expect(want)
}

// expect reads one value.
func (w waiterWire) expect(want string) {
	w.t.Helper()
	raw, err := w.read()
	if err != nil {
		w.t.Fatalf("waiting for %q: %v after %q", want, err, raw)
	}
	if got := say(raw); got != want {
		w.t.Fatalf("got %q, want %q", got, want)
	}
}

// say writes a value on one line, pushes as RESP2 writes them.
func say(raw []byte) string {
	v, _ := parseValue(raw)
	if v.kind == '*' || v.kind == '>' {
		var words []string
		for _, item := range v.items {
			text := item.text
			if len(item.items) > 0 {
				text = item.items[0].text
			}
			words = append(words, text)
		}
		return strings.Join(words, " ")
	}
	if v.kind == '_' {
		return "-1"
	}
	return v.text
}

// hold takes a hash lock and unlock releases it with a message.
func (w waiterWire) hold(key string) {
	w.t.Helper()
	w.ask("1", "HSET", key, "owner-of-the-lock-1", "1")
}

func (w waiterWire) unlock(key, message string) {
	w.t.Helper()
	w.ask("1", "EVAL", wakingUnlock, "2", key, channelOf(key), "owner-of-the-lock-1", message)
}

// TestUnlockWakesSubscribers: a message that a script publishes on the masters
// reaches every subscriber once, whichever proxy either uses.
func TestUnlockWakesSubscribers(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: ruleOfLocks})
	other := c.addProxy(t, proxyOptions{rules: ruleOfLocks})
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			key := fmt.Sprintf("lock:woken-%d", protocol)
			channel := channelOf(key)
			near, far, pattern := c.proxy.wire(t, protocol), other.wire(t, protocol), other.wire(t, protocol)
			near.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
			far.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
			far.ask("psubscribe redisson_* 2", "PSUBSCRIBE", "redisson_*")
			pattern.ask("psubscribe *"+key+"} 1", "PSUBSCRIBE", "*"+key+"}")
			holders := []waiterWire{c.proxy.wire(t, protocol), other.wire(t, protocol)}
			const rounds = 20
			for round := range rounds {
				message := fmt.Sprint("free ", round)
				holders[round%2].hold(key)
				holders[(round+1)%2].unlock(key, message)
				near.expect("message " + channel + " " + message)
				far.expect("message " + channel + " " + message)
				far.expect("pmessage redisson_* " + channel + " " + message)
				pattern.expect("pmessage *" + key + "} " + channel + " " + message)
			}
			// A plain PUBLISH goes through the upstream, and comes once too.
			holders[0].ask("4", "PUBLISH", channel, "plain")
			near.expect("message " + channel + " plain")
			far.expect("message " + channel + " plain")
			far.expect("pmessage redisson_* " + channel + " plain")
			pattern.expect("pmessage *" + key + "} " + channel + " plain")
			near.ask("unsubscribe "+channel+" 0", "UNSUBSCRIBE", channel)
			holders[0].hold(key)
			holders[0].unlock(key, "late")
			near.ask("PONG", "PING")
		})
	}
}

// TestSubscriberSeesReleaseAfterItsConfirmation is the race that every waiter
// runs: it subscribes, tries once more, and then relies on the message.
func TestSubscriberSeesReleaseAfterItsConfirmation(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: ruleOfLocks, logLevel: "warn"})
	other := c.addProxy(t, proxyOptions{rules: ruleOfLocks, logLevel: "warn"})
	waiter, tries, holder := c.proxy.wire(t, 2), c.proxy.wire(t, 2), other.wire(t, 2)
	for round := range 100 {
		key := fmt.Sprint("lock:race-", round)
		channel := channelOf(key)
		holder.hold(key)
		released := make(chan error, 1)
		go func() {
			_, err := holder.do("EVAL", wakingUnlock, "2", key, channel, "owner-of-the-lock-1", "0")
			released <- err
		}()
		waiter.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
		held, err := tries.do("EXISTS", key)
		if err != nil {
			t.Fatal(err)
		}
		if string(held) == ":1\r\n" {
			waiter.expect("message " + channel + " 0")
		}
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		if err := waiter.send(encode("UNSUBSCRIBE", channel)); err != nil {
			t.Fatal(err)
		}
		for said := ""; !strings.HasPrefix(said, "unsubscribe "); {
			raw, err := waiter.read() // the message may have come though it was not needed
			if err != nil {
				t.Fatal(err)
			}
			said = say(raw)
		}
	}
}

// TestSignalListWakesBlockedClients: BLPOP on the list that a script fills.
func TestSignalListWakesBlockedClients(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: ruleOfLocks})
	other := c.addProxy(t, proxyOptions{rules: ruleOfLocks})
	waiter, holder := c.proxy.wire(t, 2), other.wire(t, 2)
	for round := range 20 {
		token := fmt.Sprintf("token-of-round-%04d", round)
		holder.ask("OK", "SET", "lock:signalled", token, "NX", "EX", "60")
		if err := waiter.send(encode("BLPOP", "lock-signal:signalled", "0")); err != nil {
			t.Fatal(err)
		}
		holder.ask("0", "EVAL", signalUnlock, "2", "lock:signalled", "lock-signal:signalled", token)
		waiter.expect("lock-signal:signalled 1")
		waiter.ask("OK", "SET", "lock:signalled", token, "NX", "EX", "60")
		waiter.ask("1", "EVAL", compareAndDeleteText, "1", "lock:signalled", token)
	}
}

// TestTrackingWakesWaiters: invalidations of lock keys, on release and expiry,
// and none of what a holder does itself if it asked for none.
func TestTrackingWakesWaiters(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: ruleOfLocks})
	other := c.addProxy(t, proxyOptions{rules: ruleOfLocks})
	for _, options := range [][]string{{"OPTOUT"}, {"OPTOUT", "NOLOOP"}} {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			key := fmt.Sprint("lock:tracked-", len(options))
			waiter, holder := c.proxy.wire(t, 3), other.wire(t, 2)
			waiter.ask("OK", append([]string{"CLIENT", "TRACKING", "ON"}, options...)...)
			for round := range 20 {
				token := fmt.Sprintf("token-of-holder-%04d", round)
				holder.ask("OK", "EVAL", trackedLock, "1", key, token, "60000")
				waiter.ask("-1", "EVAL", trackedLock, "1", key, "token-of-the-waiter-1", "60000")
				holder.ask("1", "EVAL", compareAndDeleteText, "1", key, token)
				waiter.expect("invalidate " + key)
			}
			// An expired lock is told of when a master notices.
			holder.ask("OK", "EVAL", trackedLock, "1", key, "token-of-holder-last", "3000")
			waiter.ask("-1", "EVAL", trackedLock, "1", key, "token-of-the-waiter-1", "60000")
			waiter.expect("invalidate " + key)
		})
	}
	t.Run("own extensions", func(t *testing.T) {
		holder := c.proxy.wire(t, 3)
		holder.ask("OK", "CLIENT", "TRACKING", "ON", "OPTOUT", "NOLOOP")
		const own, mine = "lock:own", "token-of-this-holder"
		holder.ask("OK", "EVAL", trackedLock, "1", own, mine, "60000")
		for range 200 {
			holder.ask("1", "EVAL", trackedExtend, "1", own, mine, "60000")
		}
		other.wire(t, 2).ask("1", "DEL", own)
		holder.expect("invalidate " + own)
		holder.ask("0", "EVAL", trackedExtend, "1", own, mine, "60000")
	})
}

// TestWakeUpsWithMastersAway: a minority of masters may be killed and come
// back while clients wait.
func TestWakeUpsWithMastersAway(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: ruleOfLocks, restartDelay: 3 * time.Second})
	const key = "lock:away"
	channel := channelOf(key)
	waiter, tracking, holder := c.proxy.wire(t, 3), c.proxy.wire(t, 3), c.proxy.wire(t, 2)
	waiter.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
	tracking.ask("OK", "CLIENT", "TRACKING", "ON", "NOLOOP")
	round := 0
	releases := func(when string) {
		t.Helper()
		for range 5 {
			round++
			message := fmt.Sprint(when, " ", round)
			waitFor(t, "the lock is taken "+when, func() error {
				reply, err := holder.do("HSETNX", key, "owner-of-the-lock-1", "1")
				if err != nil {
					t.Fatal(err)
				}
				if string(reply) != ":1\r\n" {
					return fmt.Errorf("HSETNX says %q", reply)
				}
				return nil
			})
			tracking.ask("1", "HEXISTS", key, "owner-of-the-lock-1")
			holder.unlock(key, message)
			waiter.expect("message " + channel + " " + message)
			tracking.expect("invalidate " + key)
		}
	}
	releases("with all")
	c.masters[0].crash()
	c.masters[3].crash()
	releases("with three of five")
	c.masters[0].start(t)
	c.masters[3].start(t)
	releases("with two that are back")
}

// TestSubscribersAreToldOfGaps: where too few masters were heard, a client must
// not go on waiting for a message that it missed; it is disconnected.
func TestSubscribersAreToldOfGaps(t *testing.T) {
	c := startCluster(t, proxyOptions{rules: ruleOfLocks})
	waiter := c.proxy.wire(t, 2)
	waiter.ask("subscribe lock:gap 1", "SUBSCRIBE", "lock:gap")
	for _, master := range c.masters[:quorum] {
		master.crash()
	}
	for _, master := range c.masters[:quorum] {
		master.start(t)
	}
	_ = waiter.conn.SetReadDeadline(time.Now().Add(patience))
	rest, err := io.ReadAll(waiter.in)
	if len(rest) > 0 || err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %q and %v, want the end of the connection", rest, err)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the client still waits")
	}
}

// TestWaitingWithoutTheUpstream: the whole of it with nothing listening at the
// upstream, and once more when it is back.
func TestWaitingWithoutTheUpstream(t *testing.T) {
	c := startServers(t)
	c.upstream.crash()
	c.proxy = c.addProxy(t, proxyOptions{rules: ruleOfLocks})
	other := c.addProxy(t, proxyOptions{rules: ruleOfLocks})
	const key = "lock:alone"
	channel := channelOf(key)
	for _, protocol := range []int{2, 3} {
		waiter, holder := c.proxy.wire(t, protocol), other.wire(t, protocol)
		waiter.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
		holder.hold(key)
		holder.unlock(key, "0")
		waiter.expect("message " + channel + " 0")
		published, err := holder.do("PUBLISH", channel, "plain")
		if err != nil || !bytes.HasPrefix(published, []byte(":")) {
			t.Fatalf("PUBLISH: %q %v", published, err)
		}
		waiter.expect("message " + channel + " plain")
		waiter.ask("unsubscribe "+channel+" 0", "UNSUBSCRIBE")
		waiter.ask("PONG", "PING")
	}
	tracking, holder, kept := c.proxy.wire(t, 3), other.wire(t, 2), c.proxy.wire(t, 3)
	tracking.ask("OK", "CLIENT", "TRACKING", "ON", "OPTOUT")
	holder.ask("OK", "SET", key, "token-of-the-holder-1", "NX", "PX", "60000")
	tracking.ask("token-of-the-holder-1", "GET", key)
	holder.ask("1", "DEL", key)
	tracking.expect("invalidate " + key)
	kept.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
	c.upstream.start(t)
	kept.ask("OK", "SET", "greeting", "hello")
	_ = kept.conn.SetReadDeadline(time.Now().Add(patience))
	if rest, err := io.ReadAll(kept.in); len(rest) > 0 || err != nil {
		t.Fatalf("got %q and %v, want the end of a connection whose subscriptions the upstream does not know", rest, err)
	}
	kept = c.proxy.wire(t, 3)
	kept.ask("subscribe "+channel+" 1", "SUBSCRIBE", channel)
	if n, err := c.upstream.direct.Publish(t.Context(), channel, "from the upstream").Result(); err != nil || n != 1 {
		t.Fatalf("the upstream has %d subscribers (%v), want the one that has connected again", n, err)
	}
	kept.expect("message " + channel + " from the upstream")
	tracking.ask("hello", "GET", "greeting")
	if err := c.upstream.direct.Set(t.Context(), "greeting", "bye", 0).Err(); err != nil {
		t.Fatal(err)
	}
	tracking.expect("invalidate greeting")
}
