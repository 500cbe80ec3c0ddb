package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"redlock-proxy/integration/child"
)

// measurePassThrough compares ordinary commands through the proxy with a byte pump, plain
// Redis, and twemproxy. On a machine with other users, CPU time says more than the rate. The
// byte pump's CPU time is that of this process.
func measurePassThrough(ctx context.Context, b *bench) {
	c := b.startCluster(ctx, 5)
	bare := b.startPump(c.upstream.addr())
	owning := b.startProxyOf(ctx, c, "own")
	const proxied, own, pumped, direct, twemproxied = "proxy", "proxy with own connections", "byte pump", "plain Redis", "twemproxy"
	ports := map[string]int{proxied: c.proxy.port, own: owning.port, pumped: bare.port(), direct: c.upstream.port}
	servers := map[string]*child.Process{proxied: c.proxy.Process, own: owning.Process, pumped: thisProcess(), direct: c.upstream.Process}
	others := []string{pumped, direct, twemproxied}
	if err := installed("nutcracker", "nutcracker"); err != nil {
		b.cannot("proxy / twemproxy", err.Error())
		others = others[:2]
	} else {
		servers[twemproxied], ports[twemproxied] = b.startTwemproxy(ctx, c.upstream)
	}
	for _, pipeline := range []int{1, 16} {
		for _, command := range [][]string{{"GET", "key:__rand_int__"}, {"SET", "key:__rand_int__", "xxx"}} {
			var contestants []contestant
			for _, name := range append([]string{proxied, own}, others...) {
				run := &redisBenchmark{port: ports[name], clients: 50, pipeline: pipeline, command: command}
				contestants = append(contestants, contestant{name, run.spentBy(servers[name])})
			}
			all := must(b.alternate(ctx, contestants...))
			for _, ours := range []string{proxied, own} {
				for _, other := range others {
					wanted := bar{}
					switch {
					case other == pumped:
						wanted = atLeast(0.9)
					case other == twemproxied && pipeline == 1:
						wanted = atLeast(1)
					case other == twemproxied:
						wanted = atLeast(2)
					}
					what := fmt.Sprintf("%s, 50 clients, -P %d: %s / %s", command[0], pipeline, ours, other)
					b.report(what, all.ratio("rate", ours, other), "x", wanted,
						medians("commands/s", all.of(ours, "rate"), all.of(other, "rate")))
					b.report(what+", CPU time of each per command", all.ratio("cpu", ours, other), "x", bar{},
						medians("us", all.of(ours, "cpu"), all.of(other, "cpu")))
				}
			}
		}
	}
}

// startTwemproxy starts twemproxy with a single connection to its server. It returns the process and its port.
func (b *bench) startTwemproxy(ctx context.Context, upstream *redisServer) (*child.Process, int) {
	port, statistics := must(child.FreePort()), must(child.FreePort())
	file := filepath.Join(b.scratch, "nutcracker.yml")
	config := fmt.Sprintf("bench:\n  listen: %s\n  redis: true\n  hash: fnv1a_64\n  distribution: ketama\n"+
		"  preconnect: true\n  server_connections: 1\n  servers:\n   - %s:1\n", child.Loopback(port), upstream.addr())
	check(os.WriteFile(file, []byte(config), 0o600))
	server := must(child.Start("nutcracker", "nutcracker", "-c", file, "-s", strconv.Itoa(statistics)))
	b.atEnd(server.Kill)
	untilServing(ctx, server, answers(child.Loopback(port), "SET", "key:000000000001", "xxx"))
	return server, port
}
