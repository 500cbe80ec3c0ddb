package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"redlock-proxy/integration/child"
)

// measurePassThrough compares ordinary commands through the proxy with a byte pump, plain
// Redis, and twemproxy. On a machine with other users, CPU time says more than the rate. The
// byte pump's CPU time is that of this process.
func measurePassThrough(ctx context.Context, b *bench) error {
	c, err := b.startCluster(ctx, 5)
	if err != nil {
		return err
	}
	bare, err := b.startPump(c.upstream.addr())
	if err != nil {
		return err
	}
	owning, err := b.startProxyOf(ctx, c, "own")
	if err != nil {
		return err
	}
	const proxied, own, pumped, direct, twemproxied = "proxy", "proxy with own connections", "byte pump", "plain Redis", "twemproxy"
	ports := map[string]int{proxied: c.proxy.port, own: owning.port, pumped: bare.port(), direct: c.upstream.port}
	servers := map[string]*child.Process{proxied: c.proxy.Process, own: owning.Process, pumped: thisProcess(), direct: c.upstream.Process}
	others := []string{pumped, direct, twemproxied}
	twemproxy, port, err := b.startTwemproxy(ctx, c.upstream)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		b.cannot("proxy / twemproxy", "nutcracker is not installed (Debian package nutcracker)")
		others = others[:2]
	case err != nil:
		return err
	default:
		ports[twemproxied], servers[twemproxied] = port, twemproxy
	}
	for _, pipeline := range []int{1, 16} {
		for _, command := range [][]string{{"GET", "key:__rand_int__"}, {"SET", "key:__rand_int__", "xxx"}} {
			var contestants []contestant
			for _, name := range append([]string{proxied, own}, others...) {
				run := &redisBenchmark{port: ports[name], clients: 50, pipeline: pipeline, command: command}
				contestants = append(contestants, contestant{name, run.spentBy(servers[name])})
			}
			all, err := b.alternate(ctx, contestants...)
			if err != nil {
				return err
			}
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
	return nil
}

// startTwemproxy starts twemproxy with a single connection to its server. It returns the
// process and its port. If twemproxy is not installed, the error is exec.ErrNotFound.
func (b *bench) startTwemproxy(ctx context.Context, upstream *redisServer) (*child.Process, int, error) {
	program, err := exec.LookPath("nutcracker")
	if err != nil {
		return nil, 0, err
	}
	port, err := child.FreePort()
	if err != nil {
		return nil, 0, err
	}
	statistics, err := child.FreePort()
	if err != nil {
		return nil, 0, err
	}
	file := filepath.Join(b.scratch, "nutcracker.yml")
	config := fmt.Sprintf("bench:\n  listen: %s\n  redis: true\n  hash: fnv1a_64\n  distribution: ketama\n"+
		"  preconnect: true\n  server_connections: 1\n  servers:\n   - %s:1\n", child.Loopback(port), upstream.addr())
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, 0, err
	}
	server, err := child.Start("nutcracker", program, "-c", file, "-s", strconv.Itoa(statistics), "-a", "127.0.0.1")
	if err != nil {
		return nil, 0, err
	}
	b.atEnd(server.Kill)
	return server, port, untilServing(ctx, server, func(ctx context.Context) error {
		client, err := dialLean(ctx, child.Loopback(port))
		if err != nil {
			return err
		}
		defer client.close()
		_, err = client.do("SET", "key:000000000001", "xxx")
		return err
	})
}
