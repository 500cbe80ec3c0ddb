package main

import (
	"context"
	"fmt"
)

// measurePlain shows what a lock costs more than today: one SET NX PX at a single Redis, by the same
// clients, against the same command through the proxy, which asks three and five masters.
func measurePlain(ctx context.Context, b *bench) {
	const plain = "one Redis"
	sizes := []int{3, 5}
	proxied := func(n int) string { return fmt.Sprintf("proxy, %d masters", n) }
	var clusters []*cluster
	for _, n := range sizes {
		clusters = append(clusters, b.startCluster(ctx, n))
	}
	for _, clients := range []int{1, 50} {
		contestants := []contestant{
			driven(plain, cycles(b.leanClients(ctx, clusters[0].upstream.addr(), clients, compareAndDelete), acquireOnly)),
		}
		for i, n := range sizes {
			contestants = append(contestants, driven(proxied(n), cycles(b.leanClients(ctx, clusters[i].proxy.addr(), clients, compareAndDelete), acquireOnly)))
		}
		all := must(b.alternate(ctx, contestants...))
		for _, n := range sizes {
			for _, figure := range []string{"p50", "p99"} {
				b.report(fmt.Sprintf("%s, %s of SET NX PX: %s / %s", clientCount(clients), figure, proxied(n), plain),
					all.ratio(figure, proxied(n), plain), "x", bar{},
					medians("us", all.of(proxied(n), figure), all.of(plain, figure))+all.failures(proxied(n), plain))
			}
		}
	}
}
