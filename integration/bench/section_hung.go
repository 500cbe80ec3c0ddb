package main

import (
	"fmt"
	"strconv"
	"syscall"
	"time"

	"redlock-proxy/integration/bench/delayline"
)

// measureHungMasters measures the latency of acquires while one or two of five masters are
// stopped, or one is 20 ms away. It also counts the locks left on the masters after they
// are back. The proxy has its default timeouts. A relay makes the distance, and takes
// processor time from all others. So the far master is compared with one behind a relay
// without delay.
func measureHungMasters(b *bench) {
	const clients = 10
	c := b.startServers(5)
	c.proxy = b.startProxy(c.addresses(), c.upstream, b.masterTimeout, "")
	behindRelay := func(oneWay time.Duration) (*server, []turn) {
		line := must(delayline.Start(c.masters[4].addr(), oneWay))
		b.atEnd(line.Close)
		proxy := b.startProxy(append(c.addresses()[:4], line.Addr()), c.upstream, b.masterTimeout, "")
		return proxy, manyLocks(b.leanClients(proxy.addr(), clients, compareAndDelete))
	}
	relayedProxy, relayedTurns := behindRelay(0)
	farProxy, farTurns := behindRelay(10 * time.Millisecond)
	nearClients := b.leanClients(c.proxy.addr(), clients, compareAndDelete)

	const healthy, oneHung, twoHung = "all healthy", "one of five hung", "two of five hung"
	const oneFar, oneRelayed = "one of five 20 ms away", "one of five behind a relay"
	turns := manyLocks(nearClients)
	all := b.alternate(
		driven(healthy, turns),
		c.whileStopped(driven(oneHung, turns), c.masters[:1]),
		c.whileStopped(driven(twoHung, turns), c.masters[:2]),
		c.thenEmpty(driven(oneRelayed, relayedTurns), relayedProxy),
		c.thenEmpty(driven(oneFar, farTurns), farProxy))
	for _, pair := range [][2]string{{oneHung, healthy}, {twoHung, healthy}, {oneFar, oneRelayed}} {
		trouble, usual := pair[0], pair[1]
		for _, share := range []string{"p50", "p99"} {
			wanted := bar{}
			if share == "p99" {
				wanted = atMost(1.5)
			}
			b.compare(all, share, "us", trouble, usual, fmt.Sprintf("%d clients, acquire %s", clients, share), wanted)
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
		turns[i] = func() (time.Duration, error) {
			return cycle(client, "lock:many:"+nextToken(), acquireOnly)
		}
	}
	return turns
}

// whileStopped stops these masters for as long as inner measures. Afterwards it counts the
// locks that were left.
func (c *cluster) whileStopped(inner contestant, hung []*server) contestant {
	return c.thenEmpty(contestant{inner.name, func(length time.Duration) figures {
		for _, master := range hung {
			master.Signal(syscall.SIGSTOP)
			defer master.Signal(syscall.SIGCONT)
		}
		return inner.measure(length)
	}}, c.proxy)
}

// thenEmpty adds the number of locks left on the masters. It counts when all masters vote
// again and nothing has changed for a while, well before any TTL ends.
func (c *cluster) thenEmpty(inner contestant, proxy *server) contestant {
	return contestant{inner.name, func(length time.Duration) figures {
		measured := inner.measure(length)
		for until := time.Now().Add(lockTTL / 3); ; rest(20 * time.Millisecond) {
			check(running.Err())
			voting := int(proxy.sum("redlock_master_state", `state="voting"`))
			measured["left"] = float64(c.locksLeft())
			if measured["left"] == 0 && voting == len(c.masters) {
				return measured
			}
			if time.Now().After(until) {
				if voting < len(c.masters) {
					check(fmt.Errorf("only %d masters vote again", voting))
				}
				return measured
			}
		}
	}}
}

// locksLeft counts the locks on all masters.
func (c *cluster) locksLeft() (total int) {
	for _, master := range c.masters {
		client := must(dialLean(master.addr()))
		defer client.close()
		total += must(strconv.Atoi(string(must(client.do("EVAL", `return #redis.call("KEYS","lock:*")`, "0")))))
	}
	return total
}
