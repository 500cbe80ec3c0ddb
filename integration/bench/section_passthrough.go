package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"redlock-proxy/integration/child"
)

const proxied, own, pumped, direct = "proxy", "proxy with own connections", "byte pump", "plain Redis"

// measurePassThrough compares ordinary commands through the proxy with a byte pump, plain
// Redis, and twemproxy. On a machine with other users, CPU time says more than the rate. The
// byte pump's CPU time is that of this process.
func measurePassThrough(b *bench) {
	const twemproxied = "twemproxy"
	c := b.startCluster(5)
	bare := b.startPump(c.upstream.addr())
	servers := map[string]*server{
		proxied: c.proxy, own: b.startProxy(c.addresses(), c.upstream, generousTimeout, ownConnections),
		pumped: {Process: thisProcess(), port: bare.port()}, direct: c.upstream,
	}
	others := []string{pumped, direct, twemproxied}
	if err := installed("nutcracker", "nutcracker"); err != nil {
		b.cannot("proxy / twemproxy", err.Error())
		others = others[:2]
	} else {
		servers[twemproxied] = b.startTwemproxy(c.upstream)
	}
	for _, pipeline := range []int{1, 16} {
		for _, command := range [][]string{{"GET", "key:__rand_int__"}, {"SET", "key:__rand_int__", "xxx"}} {
			var contestants []contestant
			for _, name := range append([]string{proxied, own}, others...) {
				run := &redisBenchmark{port: servers[name].port, clients: 50, pipeline: pipeline, command: command}
				contestants = append(contestants, run.spentBy(name, servers[name].Process))
			}
			all := b.alternate(contestants...)
			for _, ours := range []string{proxied, own} {
				for _, other := range others {
					wanted := map[string]bar{pumped: atLeast(0.9), twemproxied: atLeast(1)}[other]
					if other == twemproxied && pipeline > 1 {
						wanted = atLeast(2)
					}
					what := fmt.Sprintf("%s, 50 clients, -P %d", command[0], pipeline)
					b.compare(all, "rate", "commands/s", ours, other, what, wanted)
					b.compare(all, "cpu", "us", ours, other, what+", CPU time of each per command", bar{})
				}
			}
		}
	}
}

// startTwemproxy starts twemproxy with a single connection to its server.
func (b *bench) startTwemproxy(upstream *server) *server {
	s := &server{port: must(child.FreePort())}
	file := filepath.Join(b.scratch, "nutcracker.yml")
	config := fmt.Sprintf("bench:\n  listen: %s\n  redis: true\n  hash: fnv1a_64\n  distribution: ketama\n"+
		"  preconnect: true\n  server_connections: 1\n  servers:\n   - %s:1\n", s.addr(), upstream.addr())
	check(os.WriteFile(file, []byte(config), 0o600))
	s.Process = must(child.Start("nutcracker", "nutcracker", "-c", file, "-s", strconv.Itoa(must(child.FreePort()))))
	return b.serving(s, "SET", "key:000000000001", "xxx")
}

// measureShortSessions compares clients that connect, read, take a lock, release it and leave,
// as PHP does for each request, with clients of a plain Redis.
func measureShortSessions(b *bench) {
	const clients, bare, same = 50, "plain Redis without locks", "plain Redis with the same commands"
	c := b.startCluster(5)
	owning := b.startProxy(c.addresses(), c.upstream, generousTimeout, ownConnections)
	sessions := func(name string, server *server, locks bool) contestant {
		b.leanClients(server.addr(), 1, compareAndDelete) // so that it has the script
		turns := make([]turn, clients)
		for i := range turns {
			turns[i] = shortSession(server.addr(), fmt.Sprintf("lock:short:%d", i), locks)
		}
		return spending(name, turns, map[string][]*child.Process{"server": {server.Process}})
	}
	all := b.alternate(sessions(proxied, c.proxy, true), sessions(own, owning, true),
		sessions(bare, c.upstream, false), sessions(same, c.upstream, true))
	for _, ours := range []string{proxied, own} {
		for other, wanted := range map[string]bar{bare: atLeast(0.9), same: {}} {
			what := fmt.Sprintf("%d clients that connect for each lock", clients)
			b.compare(all, "rate", "sessions/s", ours, other, what, wanted)
			b.compare(all, "server", "us", ours, other, what+", CPU time of each per session", bar{})
		}
	}
}

// shortSession connects, reads, takes and releases the lock if locks says so, and leaves.
func shortSession(addr, key string, locks bool) turn {
	return func() (time.Duration, error) {
		began := time.Now()
		client, err := dialLean(addr)
		if err != nil {
			return 0, err
		}
		defer client.close()
		if _, err := client.do("GET", "key:000000000001"); err != nil {
			return 0, err
		}
		if locks {
			client.script, client.sha = compareAndDelete, scriptSHA(compareAndDelete)
			_, err = cycle(client, key, wholeCycle)
		}
		return time.Since(began), err
	}
}
