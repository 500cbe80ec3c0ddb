package main

import (
	"fmt"
	"time"
)

// These are the contestants of the sections about lock cycles.
const (
	lean          = "lean client, proxy"
	redsyncProxy  = "redsync, proxy"
	redsyncDirect = "redsync, masters"
)

// lockers makes n clients of each kind and names the servers that each kind needs.
func (b *bench) lockers(c *cluster, n int) map[string][]lockClient {
	return map[string][]lockClient{
		lean:          b.leanClients(c.proxy.addr(), n, compareAndDelete),
		redsyncProxy:  b.redsyncClients(n, c.proxy.addr()),
		redsyncDirect: b.redsyncClients(n, c.addresses()...),
	}
}

// measureCycles compares cycles of lock and release through the proxy with redsync's over
// the same five masters. Each client has a lock of its own.
func measureCycles(b *bench) {
	c := b.startCluster(5)
	for _, load := range []struct {
		clients            int
		what, figure, unit string
		wanted             bar
	}{
		{1, "latency", "p50", "us a cycle (median)", atMost(1)},
		{50, "throughput", "rate", "cycles/s", atLeast(5)},
		{200, "throughput", "rate", "cycles/s", atLeast(7)},
	} {
		clients := b.lockers(c, load.clients)
		all := b.alternate(
			driven(lean, cycles(clients[lean], wholeCycle)),
			driven(redsyncProxy, cycles(clients[redsyncProxy], wholeCycle)),
			driven(redsyncDirect, cycles(clients[redsyncDirect], wholeCycle)))
		for _, contestant := range []string{lean, redsyncProxy} {
			b.compare(all, load.figure, load.unit, contestant, redsyncDirect, clientCount(load.clients)+", "+load.what, load.wanted)
		}
	}
}

// measureSetSizes compares the proxy with redsync at each number of masters.
func measureSetSizes(b *bench) {
	const clients = 50
	sizes := []int{3, 5, 7}
	proxied := func(n int) string { return fmt.Sprintf("N=%d, proxy", n) }
	direct := func(n int) string { return fmt.Sprintf("N=%d, redsync", n) }
	var contestants []contestant
	for _, n := range sizes {
		c := b.startCluster(n)
		contestants = append(contestants,
			driven(proxied(n), cycles(b.leanClients(c.proxy.addr(), clients, compareAndDelete), wholeCycle)),
			driven(direct(n), cycles(b.redsyncClients(clients, c.addresses()...), wholeCycle)))
	}
	all := b.alternate(contestants...)
	for _, n := range sizes {
		b.compare(all, "rate", "cycles/s", proxied(n), direct(n), fmt.Sprintf("%d clients, throughput", clients), bar{})
	}
}

// measurePlain shows what a lock costs more than today: one SET NX PX at a single Redis, by the same
// clients, against the same command through the proxy, which asks three and five masters.
func measurePlain(b *bench) {
	const plain = "one Redis"
	names := []string{"proxy, 3 masters", "proxy, 5 masters"}
	clusters := []*cluster{b.startCluster(3), b.startCluster(5)}
	for _, clients := range []int{1, 50} {
		acquires := func(name, addr string) contestant {
			return driven(name, cycles(b.leanClients(addr, clients, compareAndDelete), acquireOnly))
		}
		all := b.alternate(acquires(plain, clusters[0].upstream.addr()),
			acquires(names[0], clusters[0].proxy.addr()), acquires(names[1], clusters[1].proxy.addr()))
		for _, proxied := range names {
			for _, figure := range []string{"p50", "p99"} {
				b.compare(all, figure, "us", proxied, plain, fmt.Sprintf("%s, %s of SET NX PX", clientCount(clients), figure), bar{})
			}
		}
	}
}

// measureExamined compares three releases: by a script that the proxy can only examine, by
// the script that libraries send, which the proxy may recognise and run plain, and by a
// plain DEL.
func measureExamined(b *bench) {
	c := b.startCluster(5)
	const examined, usual, plain = "examined script", "usual script", "plain DEL"
	releases := func(n int, measured part) results {
		var contestants []contestant
		for name, script := range map[string]string{examined: disguisedDelete, usual: compareAndDelete, plain: ""} {
			contestants = append(contestants, driven(name, cycles(b.leanClients(c.proxy.addr(), n, script), measured)))
		}
		return b.alternate(contestants...)
	}
	alone, many := releases(1, releaseOnly), releases(50, wholeCycle)
	for other, wanted := range map[string]bar{usual: atMost(2.5), plain: {}} {
		b.compare(alone, "p50", "us (median)", examined, other, "1 client, latency of a release", wanted)
		b.report(fmt.Sprintf("50 clients, cost of a cycle: %s / %s", examined, other), many.ratio("rate", other, examined), "x", wanted,
			medians("cycles/s", many.of(examined, "rate"), many.of(other, "rate"))+many.failures(examined, other))
	}
}

// measureOneConnection compares cycles of 64 goroutines over one connection with those of one client,
// and of 50 clients with a connection each.
func measureOneConnection(b *bench) {
	const goroutines = 64
	c := b.startCluster(5)
	own := b.leanClients(c.proxy.addr(), 50+1, compareAndDelete)
	conn := must(dialLean(c.proxy.addr()))
	b.atEnd(conn.close)
	check(conn.lockWith(compareAndDelete))
	shared := newSharer(conn)
	b.atEnd(func() { close(shared.next) })
	lockers := make([]lockClient, goroutines)
	for i := range lockers {
		lockers[i] = &sharingLocker{sharer: shared, mine: make(chan answer, 1)}
	}
	const alone, many, one = "1 client", "50 connections", "64 over one connection"
	all := b.alternate(
		driven(alone, cycles(own[:1], wholeCycle)),
		driven(many, cycles(own[1:], wholeCycle)),
		driven(one, cycles(lockers, wholeCycle)))
	for other, wanted := range map[string]bar{alone: atLeast(4), many: atLeast(0.8)} {
		b.compare(all, "rate", "cycles/s", one, other, "throughput", wanted)
	}
}

// measureMixed measures whether one plane of the proxy slows the other. It runs lock cycles
// at a steady pace while ordinary commands come as fast as possible, and the reverse.
// Any load slows the machine, so it also measures the same load through another proxy
// process.
func measureMixed(b *bench) {
	const probes, pause = 10, 5 * time.Millisecond
	c := b.startCluster(5)
	other := b.startProxy(c.addresses(), c.upstream, generousTimeout, "")
	for _, plane := range []struct {
		probe, load string
		turns       []turn
		command     []string
		wanted      bar
	}{
		{"lock cycles", "GET -P 16", cycles(b.leanClients(c.proxy.addr(), probes, compareAndDelete), wholeCycle), []string{"GET", "key:__rand_int__"}, atMost(2)},
		{"GET", "SET NX PX -P 16", b.readers(c.proxy.addr(), probes), // these locks expire by themselves
			[]string{"SET", "lock:load:__rand_int__", "a-token-of-16-bytes-and-more", "NX", "PX", "1000"}, atMost(1.5)},
	} {
		const alone, same, elsewhere = "nothing", "the proxy", "another process of it"
		probe := driven(alone, paced(pause, plane.turns))
		through := func(name string, proxy *server) contestant {
			load := &redisBenchmark{port: proxy.port, clients: 50, pipeline: 16, command: plane.command}
			return load.saturate(name, probe)
		}
		all := b.alternate(probe, through(same, c.proxy), through(elsewhere, other))
		what := fmt.Sprintf("%d paced clients, p99 of %s while %s saturates", probes, plane.probe, plane.load)
		b.compare(all, "p99", "us", same, alone, what, plane.wanted)
		b.compare(all, "p99", "us", same, elsewhere, what, bar{})
	}
}

// readers returns n clients that GET a key which is no lock.
func (b *bench) readers(addr string, n int) []turn {
	turns := make([]turn, n)
	for i := range turns {
		client := must(dialLean(addr))
		b.atEnd(client.close)
		turns[i] = func() (time.Duration, error) {
			began := time.Now()
			_, err := client.do("GET", "key:000000000001")
			return time.Since(began), err
		}
	}
	return turns
}
