package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"redlock-proxy/integration/child"

	"github.com/redis/go-redis/v9"
)

// A lockService is something that grants locks and goes on when one of its servers is killed.
type lockService struct {
	name  string
	start func(b *bench) *runningService
	why   error // it is left out, because its program is missing
}

type runningService struct {
	clients []lockClient
	kill    func() // kills the server whose loss hurts most
}

// gapClients take and release locks of their own in each service.
const gapClients = 4

// measureGap kills a server of each service while clients take locks, and measures the
// longest time in which no client got one. Each round starts new servers.
func measureGap(b *bench) {
	services := []lockService{
		{"a master of the proxy's five is killed", startProxyService, nil},
		{"the primary is killed, three Sentinels promote its replica after 1 s", startSentinelService, nil},
		{"the leader of three etcd is killed", startEtcdService, installed("etcd", "etcd-server")},
	}
	redis.SetLogger(noLog{}) // failed dials are what is measured
	gaps, usual := map[string]spread{}, map[string]spread{}
	for round := range b.rounds {
		for i := range services {
			s := services[(i+round)%len(services)]
			if s.why != nil {
				if round == 0 {
					b.cannot(s.name, s.why.Error())
				}
				continue
			}
			watched, failures := s.start(b).watch(b.length)
			b.endSection()
			b.say("%s, round %d, %s: %v; errors: %v", b.section, round+1, s.name, watched, failures)
			gaps[s.name] = append(gaps[s.name], watched["gap"])
			usual[s.name] = append(usual[s.name], watched["usual"])
		}
	}
	for _, s := range services {
		if len(gaps[s.name]) > 0 {
			b.report(s.name+": longest time without a grant", gaps[s.name], "ms", bar{},
				fmt.Sprintf("%s ms before the kill", amount(usual[s.name].median(), "")))
		}
	}
}

// grants are the times at which clients got locks, and how often they got which error instead.
type grants struct {
	sync.Mutex
	times  []time.Time
	errors map[string]int
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

// watch has the clients take locks for a while, kills the server, and waits until locks have
// been granted again for a second, but for five seconds after the kill at least.
func (s *runningService) watch(quiet time.Duration) (figures, map[string]int) {
	taking, end := context.WithCancel(running)
	seen := grants{errors: map[string]int{}}
	var clients sync.WaitGroup
	for _, client := range s.clients {
		clients.Go(func() { seen.collect(taking, client) })
	}
	defer clients.Wait()
	defer end()
	rest(quiet)
	killed := time.Now()
	s.kill()
	for {
		rest(50 * time.Millisecond)
		switch now := time.Now(); {
		case running.Err() != nil:
			check(running.Err())
		case now.Sub(killed) > 2*patience:
			check(fmt.Errorf("no lock was granted for %v after the kill", 2*patience))
		case now.Sub(killed) > 5*time.Second && seen.flow(killed, now):
			end()
			clients.Wait()
			return seen.figures(killed), seen.errors
		}
	}
}

// collect has one client take and release locks until ctx ends.
func (g *grants) collect(ctx context.Context, client lockClient) {
	for ctx.Err() == nil {
		key := "lock:gap:" + nextToken()
		held, err := client.acquire(key)
		if err == nil && held {
			g.Lock()
			g.times = append(g.times, time.Now())
			g.Unlock()
			err = client.release(key)
		}
		if err != nil && ctx.Err() == nil {
			g.Lock()
			g.errors[err.Error()]++
			g.Unlock()
		}
		rest(time.Millisecond) // so that clients leave the servers processor time
	}
}

// flow tells whether locks have been granted for a second after the kill, and still are.
func (g *grants) flow(killed, now time.Time) bool {
	g.Lock()
	defer g.Unlock()
	first := slices.IndexFunc(g.times, func(t time.Time) bool { return t.After(killed) })
	return first >= 0 && now.Sub(g.times[first]) > time.Second && now.Sub(slices.MaxFunc(g.times, time.Time.Compare)) < 200*time.Millisecond
}

// figures are the longest time between two grants that ended before the kill, the longest
// that ended after it.
func (g *grants) figures(killed time.Time) figures {
	slices.SortFunc(g.times, time.Time.Compare)
	found := figures{"grants": float64(len(g.times))}
	for i := 1; i < len(g.times); i++ {
		name := "gap"
		if g.times[i].Before(killed) {
			name = "usual"
		}
		found[name] = max(found[name], float64(g.times[i].Sub(g.times[i-1]).Microseconds())/1000)
	}
	return found
}

// startProxyService starts five masters and a proxy with its default timeouts.
func startProxyService(b *bench) *runningService {
	c := b.startServers(5)
	c.proxy = b.startProxy(c.addresses(), c.upstream, b.masterTimeout, "")
	s := &runningService{kill: c.masters[0].Kill}
	for range gapClients {
		s.clients = append(s.clients, b.redisLocks(redis.NewClient(&redis.Options{Addr: c.proxy.addr(), MaxRetries: -1, PoolSize: 1})))
	}
	return s
}

// redisLocks is an ordinary client that locks by SET NX PX.
type redisLocks struct{ *redis.Client }

func (b *bench) redisLocks(client *redis.Client) redisLocks {
	b.atEnd(func() { client.Close() })
	return redisLocks{client}
}

func (r redisLocks) acquire(key string) (bool, error) {
	return r.SetNX(running, key, nextToken(), lockTTL).Result()
}

func (r redisLocks) release(key string) error { return r.Del(running, key).Err() }

// startSentinelService starts a primary, a replica, and three Sentinels that agree after a
// second that the primary is down. Their own default is thirty seconds.
func startSentinelService(b *bench) *runningService {
	primary := b.startRedis("the primary")
	replica := b.startRedis("the replica")
	follower := must(dialLean(replica.addr()))
	defer follower.close()
	must(follower.do("REPLICAOF", "127.0.0.1", fmt.Sprint(primary.port)))
	var addresses []string
	sentinels := []*server{b.startSentinel(primary.port), b.startSentinel(primary.port), b.startSentinel(primary.port)}
	for _, sentinel := range sentinels {
		b.knowsAll(sentinel, len(sentinels)-1)
		addresses = append(addresses, sentinel.addr())
	}
	s := &runningService{kill: primary.Kill}
	for range gapClients {
		s.clients = append(s.clients, b.redisLocks(redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "locks", SentinelAddrs: addresses, MaxRetries: -1, PoolSize: 1,
		})))
	}
	return s
}

func (b *bench) startSentinel(primary int) *server {
	s := &server{port: must(child.FreePort())}
	file := filepath.Join(b.scratch, fmt.Sprintf("sentinel-%d.conf", s.port))
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor locks 127.0.0.1 %d 2\nsentinel down-after-milliseconds locks 1000\n", s.port, b.scratch, primary)
	check(os.WriteFile(file, []byte(text), 0o600))
	s.Process = must(child.Start("a Sentinel", "redis-server", file, "--sentinel"))
	return b.serving(s, "PING")
}

// knowsAll waits until a Sentinel knows the replica and the other Sentinels.
func (b *bench) knowsAll(s *server, others int) {
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.addr()})
	defer sentinel.Close()
	b.until(s.Process, "knows all others", func() error {
		known, err := sentinel.Master(running, "locks").Result()
		if err == nil && (known["num-slaves"] != "1" || known["num-other-sentinels"] != fmt.Sprint(others)) {
			err = fmt.Errorf("it knows %s and %s", known["num-slaves"], known["num-other-sentinels"])
		}
		return err
	})
}

func installed(program, debian string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is not installed; Debian package %s", program, debian)
	}
	return nil
}
