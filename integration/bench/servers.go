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
func (b *bench) startRedis(ctx context.Context, name string) (*redisServer, error) {
	port, err := child.FreePort()
	if err != nil {
		return nil, err
	}
	server, err := child.Start(name, "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", b.scratch, "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--maxmemory-policy", "noeviction", "--maxclients", "20000")
	if err != nil {
		return nil, fmt.Errorf("%w; Debian package redis-server", err)
	}
	b.atEnd(server.Kill)
	r := &redisServer{server, port}
	return r, untilServing(ctx, server, func(ctx context.Context) error {
		client, err := dialLean(ctx, r.addr())
		if err != nil {
			return err
		}
		defer client.close()
		_, err = client.do("PING")
		return err
	})
}

// cluster is a set of masters, the upstream, and a proxy in front of them.
type cluster struct {
	masters  []*redisServer
	upstream *redisServer
	proxy    *proxyServer
}

// startCluster starts n masters and a proxy. The proxy's timeout is long, so that it does
// not give up on a master because the machine is busy.
func (b *bench) startCluster(ctx context.Context, n int) (*cluster, error) {
	c, err := b.startServers(ctx, n)
	if err != nil {
		return nil, err
	}
	c.proxy, err = b.startProxyOf(ctx, c, "")
	return c, err
}

// startProxyOf starts a proxy of a cluster, with that upstream_connections; "" is the default.
func (b *bench) startProxyOf(ctx context.Context, c *cluster, connections string) (*proxyServer, error) {
	return b.startProxy(ctx, proxyConfig{
		masters: c.addresses(), upstream: c.upstream.addr(), masterTimeout: generousTimeout, connections: connections,
	})
}

func (b *bench) startServers(ctx context.Context, n int) (*cluster, error) {
	c := &cluster{}
	var err error
	if c.upstream, err = b.startRedis(ctx, "upstream"); err != nil {
		return nil, err
	}
	for i := range n {
		master, err := b.startRedis(ctx, fmt.Sprintf("master %d", i+1))
		if err != nil {
			return nil, err
		}
		c.masters = append(c.masters, master)
	}
	return c, nil
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
