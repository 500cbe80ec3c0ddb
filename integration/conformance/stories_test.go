package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// onStage returns a run of a library whose clients connect to the proxy that reach chooses.
// They are killed when the test ends.
func onStage(t *testing.T, c *rig.Cluster, l library, lock string, reach func(name string) *rig.Proxy) *run {
	t.Helper()
	program := l.install(t)
	s := &run{t: t, cluster: c, proxy: c.Proxy, library: l, lock: lock, clients: map[string]*client{}, where: map[string][]string{}}
	s.start = func(name string) (*client, error) {
		client, err := startClient(name, program, fmt.Sprint(reach(name).Port), s.library.selects)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			client.kill()
			if t.Failed() {
				t.Logf("%s:\n%s", name, client.log.Tail(30))
			}
		})
		return client, nil
	}
	return s
}

// TestRedissonKinds tests promises that only Redisson's locks make: an owner may lock
// twice, readers share a lock, waiters get it in order.
func TestRedissonKinds(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{Rules: []string{"lock:*"}})
	for _, version := range []string{"3.17.7", "4.7.0"} {
		t.Run(version, func(t *testing.T) {
			if version == "3.17.7" {
				layer.Only(t, layer.Long, "an old version")
			}
			for _, story := range stories(t, "redisson") {
				s := onStage(t, c, libraryNamed(t, "Redisson "+version+" RLock"), "lock:"+version+":"+story.Title, func(string) *rig.Proxy { return c.Proxy })
				connect := s.start
				s.start = func(name string) (*client, error) { // the client's name says which kind of lock it uses
					kind := name[strings.LastIndexByte(name, '-')+1:]
					s.library.selects = map[string]string{"writer": "write", "reader": "read", "fair": "fair"}[kind]
					return connect(name)
				}
				s.clients["first"], s.err = s.start("writer") // it is asked for the keys
				s.more = func(event string) error {
					waiting, _, _ := strings.Cut(event, " in the queue")
					s.queued(waiting)
					return s.err
				}
				if err := s.tell(story); err != nil {
					t.Errorf("%s: %v", story.Title, err)
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

// queued waits until so many clients are in a fair lock's queue.
func (s *run) queued(waiting string) {
	s.patiently("the waiter is in the queue", func() error {
		queued := 0
		for _, master := range s.cluster.Masters {
			if fmt.Sprint(master.Direct.LLen(s.t.Context(), "redisson_lock_queue:{"+s.lock+"}").Val()) == waiting {
				queued++
			}
		}
		if queued < rig.Quorum {
			return fmt.Errorf("on %d masters", queued)
		}
		return nil
	})
}

// lateReleasers are libraries that compare the holder at release. But they refuse a release
// by a client that never took the lock.
var lateReleasers = []string{
	"ShedLock 7.10.1 redis-spring, safeUpdate",
	"Spring RedisLockRegistry 6.5.5 spin lock",
	"Spring RedisLockRegistry 7.1.0 spin lock",
}

// TestLateReleaseByLibraries: a client releases its lock after the lock has expired and
// another client has taken it.
func TestLateReleaseByLibraries(t *testing.T) {
	t.Parallel()
	c := rig.StartServers(t)
	for _, name := range lateReleasers {
		t.Run(name, func(t *testing.T) {
			l := libraryNamed(t, name)
			if l.version == "6.5.5" {
				layer.Only(t, layer.Long, "an old version")
			}
			proxy := c.AddProxy(t, rig.Options{Rules: []string{"*lock:*"}})
			if err := onStage(t, c, l, "lock:late-release", func(string) *rig.Proxy { return proxy }).tell(stories(t, "late")[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

// waitingLibraries take their locks in different ways: by SET NX, and by scripts on a
// string, a hash, a sorted set and several keys. The first ones run in each tier.
var waitingLibraries = []string{
	"phpredis by hand", "Symfony Lock over phpredis",
	"Jedis 8.0.2 by hand", "Redisson 4.7.0 RLock",
	"redis-py 8.1.0",

	"predis by hand", "Laravel cache lock over phpredis", "Spring RedisLockRegistry 7.1.0 spin lock",
	"aioredlock 0.7.3", "node-redlock 5.0.0-beta.2 two resources", "bsm/redislock 0.9.4", "redsync 4.18.1 go-redis 9",
	"commands of redlock (gem) 2.0.6 on redis-rb",
}

const everydayWaitingLibraries = 5

// TestWait: with a wait in the rule, clients that know nothing of it get a lock by a single
// try. They are served in their order, also by a release through another proxy. A client
// that is killed is passed over, and one whose time is over is refused.
func TestWait(t *testing.T) {
	t.Parallel()
	names := waitingLibraries
	if layer.Chosen() < layer.Long {
		t.Run("the others", func(t *testing.T) {
			layer.Only(t, layer.Long, fmt.Sprintf("%d more libraries", len(names)-everydayWaitingLibraries))
		})
		names = names[:everydayWaitingLibraries]
	}
	const brief, long = "*lock:short*", "*lock:*"
	options := rig.Options{Rules: []string{brief, long}, RuleMore: map[string]string{brief: "wait: 50ms", long: "wait: 1m"}}
	c := rig.StartCluster(t, options)
	options.NotNew = true
	far := c.AddProxy(t, options)
	for i, name := range names {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			s := onStage(t, c, libraryNamed(t, name), fmt.Sprintf("lock:line-%d", i), func(name string) *rig.Proxy {
				if name == "distant" {
					return far
				}
				return c.Proxy
			})
			s.more = func(event string) error {
				where, count, _ := strings.Cut(event, ": ")
				proxy := map[string]*rig.Proxy{"waiting": c.Proxy, "waiting afar": far}[where]
				if proxy == nil {
					return errors.New("nobody knows this event")
				}
				return s.shows(proxy, fmt.Sprintf("redlock_waiting_acquires{rule=%q}", long), func(now string) bool { return now == count })
			}
			if err := s.tell(stories(t, "waits")[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

// shows waits until a series has such a value.
func (s *run) shows(proxy *rig.Proxy, series string, is func(value string) bool) error {
	return rig.Eventually(func() error {
		if now := proxy.Metric(s.t, series); !is(now) {
			return fmt.Errorf("%s is %s", series, now)
		}
		return nil
	})
}

// leasingLibraries send plain SET NX PX and scripts. They know nothing of renewals: Redisson's
// own begin only where no lease time is given. Its lock is a hash, which keeps its TTL when
// its client is killed.
var leasingLibraries = []string{"phpredis by hand", "Jedis 8.0.2 by hand", "redis-py 8.1.0", "Redisson 4.7.0 RLock"}

// TestLease: with renew in the rule, a lock outlives its TTL while its client is connected.
// It ends with its TTL when the proxy is killed. With on_disconnect: release it ends when
// the client is killed. A client whose lock cannot be renewed gets an error. The TTL of 8s
// leaves a busy machine seconds for a renewal.
func TestLease(t *testing.T) {
	t.Parallel()
	const brief, lasting = "*lock:brief*", "*lock:*"
	options := rig.Options{
		Rules: []string{brief, lasting}, MasterTimeout: time.Second,
		RuleMore: map[string]string{brief: "on_disconnect: release", lasting: "renew: 10m"},
	}
	c := rig.StartCluster(t, options)
	options.NotNew = true
	play := func(t *testing.T, name, file string) {
		for _, story := range stories(t, file) {
			doomed := c.Proxy
			if story.Title == "orphan" {
				doomed = c.AddProxy(t, options)
			}
			s := onStage(t, c, libraryNamed(t, name), "lock:"+story.Title+"-"+strings.ReplaceAll(name, " ", "-"), func(name string) *rig.Proxy {
				if name == "doomed" {
					return doomed
				}
				return c.Proxy
			})
			lost := c.Proxy.Metric(t, "redlock_leases_lost_total")
			s.more = func(event string) error {
				switch event {
				case "a renewal":
					return s.shows(doomed, `redlock_lease_renewals_total{result="renewed"}`, func(now string) bool { return now != "0" })
				case "kill the proxy":
					doomed.Proc.Kill()
					t.Cleanup(func() {
						doomed.Start(t)
						rig.WaitFor(t, "the proxy is ready again", doomed.Ready)
					})
				case "the client is disconnected":
					return s.shows(c.Proxy, "redlock_leases_lost_total", func(now string) bool { return now != lost })
				case "an error tells of the loss":
					return s.hearsOfIt()
				default:
					return errors.New("nobody knows this event")
				}
				return nil
			}
			if err := s.tell(story); err != nil {
				t.Errorf("%s: %v", story.Title, err)
			}
		}
	}
	t.Run("renewed", func(t *testing.T) {
		for _, name := range leasingLibraries {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, name, "leases")
			})
		}
	})
	for _, name := range leasingLibraries { // each stops the masters of all
		t.Run("lost "+name, func(t *testing.T) { play(t, name, "lost") })
		rig.WaitFor(t, "the proxy is ready again", c.Proxy.Ready)
	}
}

// hearsOfIt requires that the client learns of its lost lock by an error. Most libraries connect again, while the masters
// are still stopped.
func (s *run) hearsOfIt() error {
	want := "QUORUMLOST "
	if s.library.library == "Jedis" {
		want = "JedisConnectionException: Unexpected end of stream"
	}
	answer, err := s.clients["first"].ask("release", s.lock)
	if !errors.As(err, new(saidError)) || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("the client that lost its lock is answered %q (%v), want an error with %q", answer, err, want)
	}
	return nil
}
