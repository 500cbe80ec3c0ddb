package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
)

// startLeases runs a whole proxy on embedded masters, and connects to it once. Masters have so long
// to answer that locks with this TTL are just renewed: it must be six times as long, and the proxy
// may learn a little less of it.
func startLeases(t *testing.T, rule route.Rule, ttl time.Duration) (*Proxy, *redis.Conn) {
	cfg := config.Demo()
	rule.Match, rule.DB = "lock:*", route.AnyDB
	cfg.Locks, cfg.MasterTimeout = route.Rules{rule}, ttl/7
	p, _ := startWholeProxy(t, cfg)
	waitReady(t, p)
	return p, connectOnce(t, p)
}

// connectOnce returns one connection, which is not replaced when it breaks.
func connectOnce(t *testing.T, p *Proxy) *redis.Conn {
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1, PoolSize: 1, ReadTimeout: patience})
	conn := client.Conn()
	t.Cleanup(func() { _, _ = conn.Close(), client.Close() })
	return conn
}

// until polls a condition, which a busy machine may take long to reach.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

const takeScript = "if redis.call('setnx',KEYS[1],ARGV[1])==1 then redis.call('pexpire',KEYS[1],ARGV[2]) return 1 end return 0"

// copyEnds returns when the copies of a lock end, of the masters that have one.
func copyEnds(t *testing.T, p *Proxy, key string) (ends []time.Time) {
	for _, server := range p.embedded {
		direct := redis.NewClient(&redis.Options{Addr: server.Address()})
		asked := time.Now()
		if left, err := direct.PTTL(t.Context(), key).Result(); err == nil && left > 0 {
			ends = append(ends, asked.Add(left))
		}
		_ = direct.Close()
	}
	return ends
}

// Every way to take a lock gets a lease. Clients know nothing of it.
func TestLocksAreHeldWhileTheirConnectionIsOpen(t *testing.T) {
	t.Parallel()                 // it waits most of its time
	const ttl = 12 * time.Second // renewed after 4 s, and on a busy machine in time if it is 8 s late
	p, client := startLeases(t, route.Rule{Renew: time.Hour}, ttl)
	ctx := t.Context()
	const value = "a-token-of-many-bytes"
	keys := []string{"lock:set", "lock:setnx", "lock:script", "lock:multi"}
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.SetNX(ctx, keys[0], value, ttl)
		pipe.SetNX(ctx, keys[1], value, 0)
		pipe.PExpire(ctx, keys[1], ttl)
		pipe.Eval(ctx, takeScript, keys[2:3], value, ttl.Milliseconds())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.SetNX(ctx, keys[3], value, 0)
		pipe.PExpire(ctx, keys[3], ttl)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	taken := time.Now() // all copies end before taken.Add(ttl), unless they are renewed
	if held := p.leases.Counts().Held; held != int64(len(keys)) {
		t.Fatalf("%d leases, want %d", held, len(keys))
	}
	for _, key := range keys {
		until(t, key+" is renewed on a majority", func() bool {
			renewed := 0
			for _, end := range copyEnds(t, p, key) {
				if end.After(taken.Add(ttl)) {
					renewed++
				}
			}
			return renewed >= 3
		})
	}
	var released, failed int64
	until(t, "the locks are released", func() bool {
		n, err := client.Del(ctx, keys...).Result()
		if released += n; err != nil {
			failed++ // on a busy machine, too few masters may answer in time
			t.Log(err)
		}
		return err == nil
	})
	if p.leases.Any() || failed == 0 && released != int64(len(keys)) {
		t.Errorf("%d were released, and %d have a lease", released, p.leases.Counts().Held)
	}
	if err := client.SetNX(ctx, keys[0], value, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	client.Do(ctx, "QUIT")
	until(t, "nobody renews an abandoned lock", func() bool { return p.leases.Counts().Held == 0 })
	if n := len(copyEnds(t, p, keys[0])); n < 3 {
		t.Errorf("%d masters have the abandoned lock, which ends with its TTL", n)
	}
}

func TestALockIsReleasedWhenItsClientLeaves(t *testing.T) {
	p, client := startLeases(t, route.Rule{Release: true}, time.Hour)
	ctx := t.Context()
	if err := client.SetNX(ctx, "lock:a", "a-token-of-many-bytes", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	other := connectOnce(t, p)
	if taken := other.SetNX(ctx, "lock:a", "another-token-of-many", time.Hour).Val(); taken {
		t.Fatal("taken twice")
	}
	client.Do(ctx, "QUIT")
	until(t, "the lock is free", func() bool { return other.SetNX(ctx, "lock:a", "another-token-of-many", time.Hour).Val() })
	until(t, "the release is counted", func() bool { return p.leases.Counts().Releases["released"] == 1 })
}

func TestAClientThatIsDisconnectedKeepsItsLock(t *testing.T) {
	p, client := startLeases(t, route.Rule{Release: true, Renew: time.Hour}, time.Hour)
	ctx := t.Context()
	if err := client.SetNX(ctx, "lock:a", "a-token-of-many-bytes", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = p.clients.Shutdown(ended)
	if client.Ping(ctx).Err() == nil {
		t.Error("the client is still connected")
	}
	masters := 0
	for _, server := range p.embedded {
		direct := redis.NewClient(&redis.Options{Addr: server.Address()})
		if direct.Get(ctx, "lock:a").Err() == nil {
			masters++
		}
		_ = direct.Close()
	}
	if masters < 3 || p.leases.Any() {
		t.Errorf("%d masters have the lock of a client that may be at work; leases: %v", masters, p.leases.Any())
	}
}

func TestAClientWhoseLockCannotBeRenewedIsDisconnected(t *testing.T) {
	t.Parallel() // it waits most of its time
	const ttl = 3 * time.Second
	p, client := startLeases(t, route.Rule{Renew: time.Hour}, ttl)
	ctx := t.Context()
	until(t, "enough masters vote in time", func() bool { // maybe not at once on a busy machine
		return client.SetNX(ctx, "lock:a", "a-token-of-many-bytes", ttl).Val()
	})
	bystander := connectOnce(t, p)
	if err := bystander.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	for _, server := range p.embedded {
		if server.Name() != "embedded upstream" {
			server.Close()
		}
	}
	until(t, "the client is disconnected", func() bool { return p.leases.Counts().Lost == 1 })
	if client.Ping(ctx).Err() == nil {
		t.Error("the client's next command succeeds")
	}
	if err := bystander.Ping(ctx).Err(); err != nil {
		t.Errorf("a client without a lock: %v", err)
	}
}
