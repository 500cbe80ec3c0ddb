package main

import (
	"context"
	"fmt"
	"strconv"

	"redlock-proxy/integration/child"
)

// redisServer is a real redis-server without persistence.
type redisServer struct {
	*child.Process
	port int
}

func (r *redisServer) addr() string { return child.Loopback(r.port) }

// startRedis starts a server that is killed when the section ends.
func (b *bench) startRedis(ctx context.Context, name string) *redisServer {
	port := must(child.FreePort())
	server, err := child.StartRedis(name, []string{"redis-server"}, b.scratch, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--maxmemory-policy", "noeviction", "--maxclients", "20000")
	if err != nil {
		panic(failure{fmt.Errorf("%w; Debian package redis-server", err)})
	}
	b.atEnd(server.Kill)
	r := &redisServer{server, port}
	untilServing(ctx, server, answers(r.addr(), "PING"))
	return r
}

// cluster is a set of masters, the upstream, and a proxy in front of them.
type cluster struct {
	masters  []*redisServer
	upstream *redisServer
	proxy    *proxyServer
}

// startCluster starts n masters and a proxy. The proxy's timeout is long, so that it does
// not give up on a master because the machine is busy.
func (b *bench) startCluster(ctx context.Context, n int) *cluster {
	c := b.startServers(ctx, n)
	c.proxy = b.startProxyOf(ctx, c, "")
	return c
}

// startProxyOf starts a proxy of a cluster, with that upstream_connections; "" is the default.
func (b *bench) startProxyOf(ctx context.Context, c *cluster, connections string) *proxyServer {
	return b.startProxy(ctx, proxyConfig{
		masters: c.addresses(), upstream: c.upstream.addr(), masterTimeout: generousTimeout, connections: connections,
	})
}

func (b *bench) startServers(ctx context.Context, n int) *cluster {
	c := &cluster{upstream: b.startRedis(ctx, "upstream")}
	for i := range n {
		c.masters = append(c.masters, b.startRedis(ctx, fmt.Sprintf("master %d", i+1)))
	}
	return c
}

func (c *cluster) addresses() []string {
	var addresses []string
	for _, master := range c.masters {
		addresses = append(addresses, master.addr())
	}
	return addresses
}

func (c *cluster) masterProcesses() []*child.Process {
	var children []*child.Process
	for _, master := range c.masters {
		children = append(children, master.Process)
	}
	return children
}
