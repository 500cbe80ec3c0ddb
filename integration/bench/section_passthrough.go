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

// measurePassThrough compares ordinary commands through the proxy with a byte
// pump, the plain Redis, and twemproxy.
func measurePassThrough(ctx context.Context, b *bench) error {
	c, err := b.startCluster(ctx, 5)
	if err != nil {
		return err
	}
	bare, err := b.startPump(c.upstream.addr())
	if err != nil {
		return err
	}
	const proxied, pumped, direct, twemproxied = "proxy", "byte pump", "plain Redis", "twemproxy"
	ports := map[string]int{proxied: c.proxy.port, pumped: bare.port(), direct: c.upstream.port}
	others := []string{pumped, direct, twemproxied}
	twemproxy, err := b.startTwemproxy(ctx, c.upstream)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		b.cannot("proxy / twemproxy", "nutcracker is not installed (Debian package nutcracker)")
		others = others[:2]
	case err != nil:
		return err
	default:
		ports[twemproxied] = twemproxy
	}
	for _, pipeline := range []int{1, 16} {
		for _, command := range [][]string{{"GET", "key:__rand_int__"}, {"SET", "key:__rand_int__", "xxx"}} {
			var contestants []contestant
			for _, name := range append([]string{proxied}, others...) {
				run := &redisBenchmark{port: ports[name], clients: 50, pipeline: pipeline, command: command}
				contestants = append(contestants, contestant{name, run.measure})
			}
			all, err := b.alternate(ctx, contestants...)
			if err != nil {
				return err
			}
			for _, other := range others {
				wanted := bar{}
				if other == pumped {
					wanted = atLeast(0.9)
				}
				b.report(fmt.Sprintf("%s, 50 clients, -P %d: proxy / %s", command[0], pipeline, other),
					all.ratio("rate", proxied, other), "x", wanted,
					medians("commands/s", all.of(proxied, "rate"), all.of(other, "rate")))
			}
		}
	}
	return nil
}

// startTwemproxy starts one with a single connection to its server, and
// returns its port. The error is exec.ErrNotFound if it is not installed.
func (b *bench) startTwemproxy(ctx context.Context, upstream *redisServer) (int, error) {
	program, err := exec.LookPath("nutcracker")
	if err != nil {
		return 0, err
	}
	port, err := child.FreePort()
	if err != nil {
		return 0, err
	}
	statistics, err := child.FreePort()
	if err != nil {
		return 0, err
	}
	file := filepath.Join(b.scratch, "nutcracker.yml")
	config := fmt.Sprintf("bench:\n  listen: %s\n  redis: true\n  hash: fnv1a_64\n  distribution: ketama\n"+
		"  preconnect: true\n  server_connections: 1\n  servers:\n   - %s:1\n", child.Loopback(port), upstream.addr())
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return 0, err
	}
	server, err := child.Start("nutcracker", program, "-c", file, "-s", strconv.Itoa(statistics), "-a", "127.0.0.1")
	if err != nil {
		return 0, err
	}
	b.atEnd(server.Kill)
	return port, untilServing(ctx, server, func(ctx context.Context) error {
		client, err := dialLean(ctx, child.Loopback(port))
		if err != nil {
			return err
		}
		defer client.close()
		_, err = client.do("SET", "key:000000000001", "xxx")
		return err
	})
}
