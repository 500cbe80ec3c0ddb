package rig

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const (
	MasterCount = 5
	Quorum      = MasterCount/2 + 1
)

// Cluster is five independent masters, the upstream, and a proxy in front of them.
type Cluster struct {
	Masters  []*Server
	Upstream *Server
	Proxy    *Proxy
	Embedded bool // the servers are embedded in the proxy
}

// StartServers starts the servers without a proxy.
func StartServers(t testing.TB) *Cluster {
	t.Helper()
	return StartServersOf(t, "redis-server")
}

// StartServersOf is StartServers with another binary than redis-server, and with more directives.
func StartServersOf(t testing.TB, binary string, config ...string) *Cluster {
	t.Helper()
	server := func(name string) *Server {
		r := NewServer(t, name, config...)
		r.Binary = binary
		r.Start(t)
		return r
	}
	c := &Cluster{Upstream: server("upstream")}
	for i := range MasterCount {
		c.Masters = append(c.Masters, server(fmt.Sprintf("master%d", i+1)))
	}
	return c
}

func StartCluster(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := StartServers(t)
	c.Proxy = c.AddProxy(t, options)
	return c
}

// AddProxy starts one more proxy in front of the same servers.
func (c *Cluster) AddProxy(t testing.TB, options Options) *Proxy {
	t.Helper()
	if options.Upstream == "" {
		options.Upstream = c.Upstream.URL()
	}
	if options.Masters == nil {
		for _, master := range c.Masters {
			options.Masters = append(options.Masters, master.URL())
		}
	}
	return StartProxy(t, options)
}

// Holders counts the masters on which key has this value.
func (c *Cluster) Holders(t testing.TB, key, value string) int {
	t.Helper()
	count := 0
	for _, master := range c.Masters {
		if held, ok := master.Value(t, key); ok && held == value {
			count++
		}
	}
	return count
}

// WaitHeld waits until key has this value on at least a quorum of the masters.
func (c *Cluster) WaitHeld(t testing.TB, key, value string) {
	t.Helper()
	WaitFor(t, "a quorum holds "+key, func() error {
		if n := c.Holders(t, key, value); n < Quorum {
			return fmt.Errorf("%d masters hold it", n)
		}
		return nil
	})
}

// WaitGone waits until no running master has key.
func (c *Cluster) WaitGone(t testing.TB, key string) {
	t.Helper()
	WaitFor(t, key+" is gone from every master", func() error {
		for _, master := range c.Masters {
			if !master.Proc.Running() {
				continue
			}
			if value, ok := master.Value(t, key); ok {
				return fmt.Errorf("%s still holds %q", master.Name, value)
			}
		}
		return nil
	})
}

// WaitStates waits until the keys have the same contents on every master as on the
// server plain. It has to wait: a client gets its verdict before the slowest master has
// executed the command.
func (c *Cluster) WaitStates(t testing.TB, plain *Server, keys []string) error {
	t.Helper()
	return c.waitStatesOn(t, plain, keys, MasterCount)
}

// WaitQuorumStates is WaitStates, but a majority of the masters is enough. A master that
// has not yet answered a refused command is left out of the next acquire.
func (c *Cluster) WaitQuorumStates(t testing.TB, plain *Server, keys []string) error {
	t.Helper()
	return c.waitStatesOn(t, plain, keys, Quorum)
}

func (c *Cluster) waitStatesOn(t testing.TB, plain *Server, keys []string, least int) error {
	t.Helper()
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	defer cancel()
	deadline := time.Now().Add(Patience)
	for {
		want, err := plain.States(ctx, keys)
		if err != nil {
			return err
		}
		err = c.compareStates(ctx, want, keys, least)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *Cluster) compareStates(ctx context.Context, want map[string]KeyState, keys []string, least int) error {
	unlike := make(map[string]int)
	for _, server := range c.Servers() {
		states, err := server.States(ctx, keys)
		if err != nil {
			return err
		}
		for _, key := range keys {
			expected := want[key]
			if lockKey(key) == (server == c.Upstream) {
				expected = KeyState{Kind: "none", ttl: -2}
			}
			if states[key].Matches(expected) {
				continue
			}
			if unlike[key]++; server == c.Upstream || unlike[key] > MasterCount-least {
				return fmt.Errorf("key %q on %s is %s, on plain Redis %s", key, server.Name, states[key], want[key])
			}
		}
	}
	return nil
}

func (c *Cluster) Servers() []*Server {
	return append([]*Server{c.Upstream}, c.Masters...)
}

// With returns the options, with the cluster's servers filled in.
func (c *Cluster) With(options Options) Options {
	options.Upstream = c.Upstream.URL()
	for _, master := range c.Masters {
		options.Masters = append(options.Masters, master.URL())
	}
	return options
}
