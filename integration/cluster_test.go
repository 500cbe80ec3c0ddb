package integration

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const (
	masterCount = 5
	quorum      = masterCount/2 + 1
)

// cluster is five independent masters, the upstream, and a proxy before them.
type cluster struct {
	masters  []*redisServer
	upstream *redisServer
	proxy    *proxyProcess
	toys     bool // embedded in the proxy
}

// startServers starts the servers without a proxy.
func startServers(t testing.TB) *cluster {
	t.Helper()
	return startServersOf(t, "redis-server")
}

// startServersOf does it with another binary than redis-server.
func startServersOf(t testing.TB, binary string) *cluster {
	t.Helper()
	server := func(name string) *redisServer {
		r := newRedis(t, name)
		r.binary = binary
		r.start(t)
		return r
	}
	c := &cluster{upstream: server("upstream")}
	for i := range masterCount {
		c.masters = append(c.masters, server(fmt.Sprintf("master%d", i+1)))
	}
	return c
}

func startCluster(t testing.TB, options proxyOptions) *cluster {
	t.Helper()
	c := startServers(t)
	c.proxy = c.addProxy(t, options)
	return c
}

// addProxy starts one more proxy over the same servers.
func (c *cluster) addProxy(t testing.TB, options proxyOptions) *proxyProcess {
	t.Helper()
	if options.upstream == "" {
		options.upstream = c.upstream.url()
	}
	if options.masters == nil {
		for _, master := range c.masters {
			options.masters = append(options.masters, master.url())
		}
	}
	return startProxy(t, options)
}

// holders counts the masters that hold key with that value.
func (c *cluster) holders(t testing.TB, key, value string) int {
	t.Helper()
	count := 0
	for _, master := range c.masters {
		if held, ok := master.value(t, key); ok && held == value {
			count++
		}
	}
	return count
}

// waitHeld waits until at least a quorum holds key with that value.
func (c *cluster) waitHeld(t testing.TB, key, value string) {
	t.Helper()
	waitFor(t, "a quorum holds "+key, func() error {
		if n := c.holders(t, key, value); n < quorum {
			return fmt.Errorf("%d masters hold it", n)
		}
		return nil
	})
}

// waitGone waits until no master that runs has key any more.
func (c *cluster) waitGone(t testing.TB, key string) {
	t.Helper()
	waitFor(t, key+" is gone from every master", func() error {
		for _, master := range c.masters {
			if !master.proc.Running() {
				continue
			}
			if value, ok := master.value(t, key); ok {
				return fmt.Errorf("%s still holds %q", master.name, value)
			}
		}
		return nil
	})
}

// waitStates waits until every master holds of each key what plain holds.
// It waits because a verdict does not: the slowest master is behind it.
func (c *cluster) waitStates(t testing.TB, plain *redisServer, keys []string) error {
	t.Helper()
	return c.waitStatesOn(t, plain, keys, masterCount)
}

// waitQuorumStates is content with a majority: a master that still owes its
// answer to a refused command is left out of the next acquire.
func (c *cluster) waitQuorumStates(t testing.TB, plain *redisServer, keys []string) error {
	t.Helper()
	return c.waitStatesOn(t, plain, keys, quorum)
}

func (c *cluster) waitStatesOn(t testing.TB, plain *redisServer, keys []string, least int) error {
	t.Helper()
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	deadline := time.Now().Add(patience)
	for {
		want, err := plain.states(ctx, keys)
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

func (c *cluster) compareStates(ctx context.Context, want map[string]keyState, keys []string, least int) error {
	unlike := make(map[string]int)
	for _, server := range c.servers() {
		states, err := server.states(ctx, keys)
		if err != nil {
			return err
		}
		for _, key := range keys {
			expected := want[key]
			if lockKey(key) == (server == c.upstream) {
				expected = keyState{kind: "none", ttl: -2}
			}
			if states[key].matches(expected) {
				continue
			}
			if unlike[key]++; server == c.upstream || unlike[key] > masterCount-least {
				return fmt.Errorf("key %q on %s is %s, on plain Redis %s", key, server.name, states[key], want[key])
			}
		}
	}
	return nil
}

func (c *cluster) servers() []*redisServer {
	return append([]*redisServer{c.upstream}, c.masters...)
}
