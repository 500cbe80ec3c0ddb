package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// TestRedissonKinds tests promises that only Redisson's locks make: an owner may lock
// twice, readers share a lock, waiters get it in order.
func TestRedissonKinds(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: []string{"lock:*"}})
	for _, version := range []string{"redisson-3", "redisson-4"} {
		t.Run(version, func(t *testing.T) {
			if version == "redisson-3" {
				layer.Only(t, layer.Long, "an old version")
			}
			program := java("ConformanceRedisson", version)(t)
			start := func(kind string, count int) (clients []*conformanceClient) {
				for i := range count {
					client, err := startConformanceClient(t, fmt.Sprintf("%s client %d", kind, i+1), program, c.Proxy.Port, kind)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := client.finish(); err != nil {
							t.Error(err)
						}
						if t.Failed() {
							t.Logf("%s:\n%s", client.name, client.log.Tail(30))
						}
					})
					clients = append(clients, client)
				}
				return clients
			}
			readers, writers, fair := start("read", 2), start("write", 2), start("fair", 3)
			for name, check := range map[string]func(*conformanceRun){
				"reentrant": func(s *conformanceRun) { s.locksTwice(writers[0], writers[1]) },
				"shared":    func(s *conformanceRun) { s.readersExcludeWriters(readers, writers[0]) },
				"fair":      func(s *conformanceRun) { s.waitersInOrder(fair) },
			} {
				s := &conformanceRun{t: t, cluster: c, first: readers[0], where: map[string][]string{}, lock: "lock:" + version + ":" + name}
				if check(s); s.err != nil {
					t.Errorf("%s: %v", name, s.err)
				}
			}
		})
	}
	// All keys that Redisson derives from a lock's name are on the masters. The upstream sees
	// none of them except in subscriptions, which the proxy makes on both.
	if keys, err := c.Upstream.Direct.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("the upstream has %q, %v", keys, err)
	}
	seen, err := c.Upstream.Direct.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"del", "evalsha", "hexists", "publish"} {
		if strings.Contains(seen, "cmdstat_"+command+":") {
			t.Errorf("the upstream was asked to %s", command)
		}
	}
}

// locksTwice: the lock is free after its owner has released it as often as taken it.
func (s *conformanceRun) locksTwice(owner, other *conformanceClient) {
	s.says(owner, "yes", "acquire", s.lock, conformanceTTL)
	s.says(owner, "yes", "acquire", s.lock, conformanceTTL)
	s.says(other, "no", "acquire", s.lock, conformanceTTL)
	s.says(owner, "yes", "release", s.lock)
	s.onQuorum(s.lock)
	s.says(other, "no", "acquire", s.lock, conformanceTTL)
	s.says(owner, "yes", "mine", s.lock)
	s.says(owner, "yes", "release", s.lock)
	s.gone(s.lock)
	s.says(other, "yes", "acquire", s.lock, conformanceTTL)
	s.says(other, "yes", "release", s.lock)
	s.gone(s.lock)
}

// readersExcludeWriters: two readers read together, and a writer writes alone.
func (s *conformanceRun) readersExcludeWriters(readers []*conformanceClient, writer *conformanceClient) {
	s.says(readers[0], "yes", "acquire", s.lock, conformanceTTL)
	s.says(readers[1], "yes", "acquire", s.lock, conformanceTTL)
	s.onQuorum(s.lock)
	s.says(writer, "no", "acquire", s.lock, conformanceTTL)
	s.says(readers[0], "yes", "release", s.lock)
	s.says(writer, "no", "acquire", s.lock, conformanceTTL)
	s.says(readers[0], "no", "release", s.lock)
	s.tells(writer, "wait", s.lock, conformanceTTL, rig.Patience.Milliseconds())
	s.says(readers[1], "yes", "release", s.lock)
	s.answers(writer, "yes")
	s.onQuorum(s.lock)
	s.says(readers[0], "no", "acquire", s.lock, conformanceTTL)
	s.tells(readers[0], "wait", s.lock, conformanceTTL, rig.Patience.Milliseconds())
	s.tells(readers[1], "wait", s.lock, conformanceTTL, rig.Patience.Milliseconds())
	s.says(writer, "yes", "release", s.lock)
	s.answers(readers[0], "yes")
	s.answers(readers[1], "yes")
	s.says(writer, "no", "acquire", s.lock, conformanceTTL)
	s.says(readers[0], "yes", "release", s.lock)
	s.says(readers[1], "yes", "release", s.lock)
	s.gone(s.lock)
}

// waitersInOrder: the first waiter gets the lock first.
func (s *conformanceRun) waitersInOrder(clients []*conformanceClient) {
	s.says(clients[0], "yes", "acquire", s.lock, conformanceTTL)
	for i, waiter := range clients[1:] {
		s.tells(waiter, "wait", s.lock, conformanceTTL, rig.Patience.Milliseconds())
		s.patiently("the waiter is in the queue", func() error {
			queued := 0
			for _, master := range s.cluster.Masters {
				ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
				if master.Direct.LLen(ctx, "redisson_lock_queue:{"+s.lock+"}").Val() == int64(i+1) {
					queued++
				}
				cancel()
			}
			if queued < rig.Quorum {
				return fmt.Errorf("on %d masters", queued)
			}
			return nil
		})
	}
	for i, holder := range clients {
		s.says(holder, "yes", "release", s.lock)
		if i+1 < len(clients) {
			s.answers(clients[i+1], "yes") // the next waiter waits for this one's release
		}
	}
	s.gone(s.lock)
}
