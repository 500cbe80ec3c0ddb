package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"redlock-proxy/integration/bench/delayline"
)

// measureHungMasters measures the latency of acquires while one or two of five masters are
// stopped, or one is 20 ms away. It also counts the locks left on the masters after they
// are back. The proxy has its default timeouts. A relay makes the distance, and takes
// processor time from all others. So the far master is compared with one behind a relay
// without delay.
func measureHungMasters(ctx context.Context, b *bench) {
	const clients = 10
	c := b.startServers(ctx, 5)
	near := proxyConfig{masters: c.addresses(), upstream: c.upstream.addr(), masterTimeout: b.masterTimeout}
	c.proxy = b.startProxy(ctx, near)
	behindRelay := func(oneWay time.Duration) (*proxyServer, []turn) {
		line := must(delayline.Start(c.masters[4].addr(), oneWay))
		b.atEnd(line.Close)
		relayed := near
		relayed.masters = append(c.addresses()[:4], line.Addr())
		proxy := b.startProxy(ctx, relayed)
		return proxy, manyLocks(b.leanClients(ctx, proxy.addr(), clients, compareAndDelete))
	}
	relayedProxy, relayedTurns := behindRelay(0)
	farProxy, farTurns := behindRelay(10 * time.Millisecond)
	nearClients := b.leanClients(ctx, c.proxy.addr(), clients, compareAndDelete)

	const healthy, oneHung, twoHung = "all healthy", "one of five hung", "two of five hung"
	const oneFar, oneRelayed = "one of five 20 ms away", "one of five behind a relay"
	turns := manyLocks(nearClients)
	all := must(b.alternate(ctx,
		driven(healthy, turns),
		c.whileStopped(driven(oneHung, turns), c.masters[:1]),
		c.whileStopped(driven(twoHung, turns), c.masters[:2]),
		c.thenEmpty(driven(oneRelayed, relayedTurns), relayedProxy),
		c.thenEmpty(driven(oneFar, farTurns), farProxy)))
	for _, pair := range [][2]string{{oneHung, healthy}, {twoHung, healthy}, {oneFar, oneRelayed}} {
		trouble, usual := pair[0], pair[1]
		for _, share := range []string{"p50", "p99"} {
			wanted := bar{}
			if share == "p99" {
				wanted = atMost(1.5)
			}
			b.report(fmt.Sprintf("%d clients, acquire %s: %s / %s", clients, share, trouble, usual),
				all.ratio(share, trouble, usual), "x", wanted,
				medians("us", all.of(trouble, share), all.of(usual, share))+all.failures(trouble, usual))
		}
		b.report("locks left on the masters, after: "+trouble, all.of(trouble, "left"), "locks", atMost(0),
			fmt.Sprintf("%s locks taken each time", amount(all.of(trouble, "turns").median(), "")))
	}
}

// manyLocks makes cycles in which each lock is taken only once, so that a lock left behind
// is not mistaken for the next.
func manyLocks(clients []lockClient) []turn {
	turns := make([]turn, len(clients))
	for i, client := range clients {
		turns[i] = func(ctx context.Context) (time.Duration, error) {
			return cycle(ctx, client, "lock:many:"+nextToken(), acquireOnly)
		}
	}
	return turns
}

// whileStopped stops these masters for as long as inner measures. Afterwards it counts the
// locks that were left.
func (c *cluster) whileStopped(inner contestant, hung []*redisServer) contestant {
	settled := c.thenEmpty(contestant{inner.name, func(ctx context.Context, length time.Duration) (figures, error) {
		for _, master := range hung {
			master.Signal(syscall.SIGSTOP)
		}
		defer func() {
			for _, master := range hung {
				master.Signal(syscall.SIGCONT)
			}
		}()
		return inner.measure(ctx, length)
	}}, c.proxy)
	return settled
}

// thenEmpty adds the number of locks left on the masters. It counts when all masters vote
// again and nothing has changed for a while, well before any TTL ends.
func (c *cluster) thenEmpty(inner contestant, proxy *proxyServer) contestant {
	return contestant{inner.name, func(ctx context.Context, length time.Duration) (figures, error) {
		measured, err := inner.measure(ctx, length)
		if err != nil {
			return nil, err
		}
		until := time.Now().Add(lockTTL / 3)
		for {
			left, err := c.locksLeft(ctx)
			if err != nil {
				return nil, err
			}
			certified, err := proxy.metrics(ctx)
			if err != nil {
				return nil, err
			}
			voting := certified.sum("redlock_master_state", `state="voting"`)
			measured["left"] = float64(left)
			if left == 0 && int(voting) == len(c.masters) {
				return measured, nil
			}
			if time.Now().After(until) {
				if int(voting) < len(c.masters) {
					return nil, fmt.Errorf("only %.0f masters vote again", voting)
				}
				return measured, nil
			}
			rest(ctx, 20*time.Millisecond)
		}
	}}
}

// locksLeft counts the locks on all masters.
func (c *cluster) locksLeft(ctx context.Context) (int, error) {
	const count = `return #redis.call("KEYS","lock:*")`
	total := 0
	for _, master := range c.masters {
		client, err := dialLean(ctx, master.addr())
		if err != nil {
			return 0, err
		}
		reply, err := client.do("EVAL", count, "0")
		client.close()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", master.Name, err)
		}
		var left int
		if _, err := fmt.Fscan(strings.NewReader(string(reply)), &left); err != nil {
			return 0, err
		}
		total += left
	}
	return total, nil
}
