package main

import (
	"context"
	"fmt"
	"time"

	"redlock-proxy/integration/child"
)

// measureShortSessions compares clients that connect, read, take a lock, release it and leave,
// as PHP does for each request, with clients of a plain Redis.
func measureShortSessions(ctx context.Context, b *bench) {
	const clients = 50
	const proxied, own, bare, same = "proxy", "proxy with own connections", "plain Redis without locks", "plain Redis with the same commands"
	c := b.startCluster(ctx, 5)
	owning := b.startProxyOf(ctx, c, "own")
	for _, addr := range []string{c.proxy.addr(), owning.addr(), c.upstream.addr()} { // each gets the script
		b.leanClients(ctx, addr, 1, compareAndDelete)
	}
	contestants := []contestant{
		shortSessions(proxied, c.proxy.addr(), c.proxy.Process, clients, true),
		shortSessions(own, owning.addr(), owning.Process, clients, true),
		shortSessions(bare, c.upstream.addr(), c.upstream.Process, clients, false),
		shortSessions(same, c.upstream.addr(), c.upstream.Process, clients, true),
	}
	all := must(b.alternate(ctx, contestants...))
	for _, ours := range []string{proxied, own} {
		for _, other := range []string{bare, same} {
			wanted := bar{}
			if other == bare {
				wanted = atLeast(0.9)
			}
			what := fmt.Sprintf("%d clients that connect for each lock: %s / %s", clients, ours, other)
			b.report(what, all.ratio("rate", ours, other), "x", wanted,
				medians("sessions/s", all.of(ours, "rate"), all.of(other, "rate"))+all.failures(ours, other))
			b.report(what+", CPU time of each per session", all.ratio("server", ours, other), "x", bar{},
				medians("us", all.of(ours, "server"), all.of(other, "server")))
		}
	}
}

func shortSessions(name, addr string, server *child.Process, clients int, locks bool) contestant {
	turns := make([]turn, clients)
	for i := range turns {
		turns[i] = shortSession(addr, fmt.Sprintf("lock:short:%d", i), locks)
	}
	return spending(name, turns, map[string][]*child.Process{"server": {server}})
}

// shortSession connects, reads, takes and releases the lock if locks says so, and leaves.
func shortSession(addr, key string, locks bool) turn {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		client, err := dialLean(ctx, addr)
		if err != nil {
			return 0, err
		}
		defer client.close()
		if _, err := client.do("GET", "key:000000000001"); err != nil {
			return 0, err
		}
		if locks {
			client.script, client.sha = compareAndDelete, scriptSHA(compareAndDelete)
			_, err = cycle(ctx, client, key, wholeCycle)
		}
		return time.Since(began), err
	}
}
