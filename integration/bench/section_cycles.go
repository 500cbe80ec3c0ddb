package main

import (
	"context"
	"fmt"
)

// These are the contestants of the sections about lock cycles.
const (
	lean          = "lean client, proxy"
	redsyncProxy  = "redsync, proxy"
	redsyncDirect = "redsync, masters"
)

// lockers makes n clients of each kind and names the servers that each kind needs.
func (b *bench) lockers(ctx context.Context, c *cluster, n int) map[string][]lockClient {
	return map[string][]lockClient{
		lean:          b.leanClients(ctx, c.proxy.addr(), n, compareAndDelete),
		redsyncProxy:  b.redsyncClients(n, c.proxy.addr()),
		redsyncDirect: b.redsyncClients(n, c.addresses()...),
	}
}

// measureCycles compares cycles of lock and release through the proxy with redsync's over
// the same five masters. Each client has a lock of its own.
func measureCycles(ctx context.Context, b *bench) {
	c := b.startCluster(ctx, 5)
	for _, load := range []struct {
		clients      int
		figure, unit string
		wanted       bar
	}{
		{1, "p50", "us a cycle (median)", atMost(1)},
		{50, "rate", "cycles/s", atLeast(5)},
		{200, "rate", "cycles/s", atLeast(7)},
	} {
		clients := b.lockers(ctx, c, load.clients)
		all := must(b.alternate(ctx,
			driven(lean, cycles(clients[lean], wholeCycle)),
			driven(redsyncProxy, cycles(clients[redsyncProxy], wholeCycle)),
			driven(redsyncDirect, cycles(clients[redsyncDirect], wholeCycle))))
		what := "throughput"
		if load.figure == "p50" {
			what = "latency"
		}
		for _, contestant := range []string{lean, redsyncProxy} {
			b.report(fmt.Sprintf("%s, %s: %s / %s", clientCount(load.clients), what, contestant, redsyncDirect),
				all.ratio(load.figure, contestant, redsyncDirect), "x", load.wanted,
				medians(load.unit, all.of(contestant, load.figure), all.of(redsyncDirect, load.figure))+
					all.failures(contestant, redsyncDirect))
		}
	}
}

// measureSetSizes shows how the cost of a cycle grows with the number of masters, and
// compares the proxy with redsync at each number.
func measureSetSizes(ctx context.Context, b *bench) {
	const clients = 50
	sizes := []int{3, 5, 7}
	proxied := func(n int) string { return fmt.Sprintf("N=%d, proxy", n) }
	direct := func(n int) string { return fmt.Sprintf("N=%d, redsync", n) }
	var contestants []contestant
	for _, n := range sizes {
		c := b.startCluster(ctx, n)
		leanOnes := b.leanClients(ctx, c.proxy.addr(), clients, compareAndDelete)
		contestants = append(contestants,
			driven(proxied(n), cycles(leanOnes, wholeCycle)),
			driven(direct(n), cycles(b.redsyncClients(clients, c.addresses()...), wholeCycle)))
	}
	all := must(b.alternate(ctx, contestants...))
	for i, n := range sizes[1:] {
		fewer := sizes[i]
		cost := all.ratio("rate", proxied(fewer), proxied(n)) // the cost of a cycle is the inverse of the rate
		b.report(fmt.Sprintf("%d clients, cost of a cycle / N: N=%d / N=%d", clients, n, fewer),
			cost.times(float64(fewer)/float64(n)), "x", atMost(1),
			medians("cycles/s", all.of(proxied(n), "rate"), all.of(proxied(fewer), "rate")))
	}
	for _, n := range sizes {
		b.report(fmt.Sprintf("%d clients, N=%d, throughput: %s / %s", clients, n, lean, redsyncDirect),
			all.ratio("rate", proxied(n), direct(n)), "x", bar{},
			medians("cycles/s", all.of(proxied(n), "rate"), all.of(direct(n), "rate")))
	}
}
