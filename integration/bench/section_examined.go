package main

import (
	"context"
	"fmt"
)

// measureExamined compares three releases: by a script that the proxy can only examine, by
// the script that libraries send, which the proxy may recognise and run plain, and by a
// plain DEL.
func measureExamined(ctx context.Context, b *bench) {
	c := b.startCluster(ctx, 5)
	const examined, usual, plain = "examined script", "usual script", "plain DEL"
	for _, n := range []int{1, 50} {
		measured := releaseOnly
		if n > 1 {
			measured = wholeCycle
		}
		var contestants []contestant
		for _, release := range []struct{ name, script string }{
			{examined, disguisedDelete}, {usual, compareAndDelete}, {plain, ""},
		} {
			clients := b.leanClients(ctx, c.proxy.addr(), n, release.script)
			contestants = append(contestants, driven(release.name, cycles(clients, measured)))
		}
		all := must(b.alternate(ctx, contestants...))
		for _, other := range []string{usual, plain} {
			wanted := atMost(2.5)
			if other == plain {
				wanted = bar{}
			}
			if n == 1 {
				b.report(fmt.Sprintf("1 client, latency of a release: %s / %s", examined, other),
					all.ratio("p50", examined, other), "x", wanted,
					medians("us (median)", all.of(examined, "p50"), all.of(other, "p50")))
				continue
			}
			b.report(fmt.Sprintf("%s, cost of a cycle: %s / %s", clientCount(n), examined, other),
				all.ratio("rate", other, examined), "x", wanted,
				medians("cycles/s", all.of(examined, "rate"), all.of(other, "rate"))+all.failures(examined, other))
		}
	}
}
