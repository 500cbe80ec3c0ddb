package main

import (
	"context"
	"fmt"
	"time"
)

// measureMixed measures whether one plane of the proxy slows the other. It runs lock cycles
// at a steady pace while ordinary commands come as fast as possible, and the reverse.
// Any load slows the machine, so it also measures the same load through another proxy
// process.
func measureMixed(ctx context.Context, b *bench) {
	const probes, pause = 10, 5 * time.Millisecond
	c := b.startCluster(ctx, 5)
	other := b.startProxy(ctx, proxyConfig{masters: c.addresses(), upstream: c.upstream.addr(), masterTimeout: generousTimeout})
	lockers := b.leanClients(ctx, c.proxy.addr(), probes, compareAndDelete)
	readers := b.readers(ctx, c.proxy.addr(), probes)
	forwarded := func(port int) *redisBenchmark {
		return &redisBenchmark{port: port, clients: 50, pipeline: 16, command: []string{"GET", "key:__rand_int__"}}
	}
	locking := func(port int) *redisBenchmark { // the locks expire by themselves
		return &redisBenchmark{port: port, clients: 50, pipeline: 16,
			command: []string{"SET", "lock:load:__rand_int__", "a-token-of-16-bytes-and-more", "NX", "PX", "1000"}}
	}
	for _, plane := range []struct {
		probe, load string
		turns       []turn
		saturation  func(port int) *redisBenchmark
		wanted      bar
	}{
		{"lock cycles", "GET -P 16", cycles(lockers, wholeCycle), forwarded, atMost(2)},
		{"GET", "SET NX PX -P 16", readers, locking, atMost(1.5)},
	} {
		const alone, same, elsewhere = "nothing", "the proxy", "another process of it"
		probe := driven(alone, paced(pause, plane.turns))
		all := must(b.alternate(ctx, probe,
			plane.saturation(c.proxy.port).saturate(same, probe),
			plane.saturation(other.port).saturate(elsewhere, probe)))
		what := fmt.Sprintf("%d paced clients, p99 of %s while %s saturates the proxy / ", probes, plane.probe, plane.load)
		b.report(what+alone, all.ratio("p99", same, alone), "x", plane.wanted,
			medians("us", all.of(same, "p99"), all.of(alone, "p99"))+all.failures(alone, same, elsewhere))
		b.report(what+elsewhere, all.ratio("p99", same, elsewhere), "x", bar{},
			medians("us", all.of(same, "p99"), all.of(elsewhere, "p99")))
	}
}

// readers returns n clients that GET a key which is no lock.
func (b *bench) readers(ctx context.Context, addr string, n int) []turn {
	turns := make([]turn, n)
	for i := range turns {
		client := must(dialLean(ctx, addr))
		b.atEnd(client.close)
		turns[i] = func(context.Context) (time.Duration, error) {
			began := time.Now()
			_, err := client.do("GET", "key:000000000001")
			return time.Since(began), err
		}
	}
	return turns
}
