package conformance

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// lockClient is an application's use of its library. Errors end the test.
type lockClient interface {
	acquire(key, token string, ttl time.Duration) bool
	owner(key string) string // "": nobody
	extend(key, token string, ttl time.Duration) bool
	release(key, token string) bool
}

// TestUnmodifiedClients: with each library, one lock goes through its whole life on a proxy
// that the library uses as its Redis.
func TestUnmodifiedClients(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	port := fmt.Sprint(c.Proxy.Port)
	jedis := func(protocol string) func(t *testing.T) lockClient {
		return func(t *testing.T) lockClient {
			return startTalker(t, append(java("LockClient", "jedis-8")(t).words, port, protocol)...)
		}
	}
	for name, connect := range map[string]func(t *testing.T) lockClient{
		"go-redis":    func(t *testing.T) lockClient { return &goRedisClient{t, c.Proxy.Client(t)} },
		"redsync":     func(t *testing.T) lockClient { return newRedsyncClient(t, c.Proxy) },
		"redis-cli":   func(t *testing.T) lockClient { return &cliClient{t, []string{"-p", port}} },
		"redis-cli 3": func(t *testing.T) lockClient { return &cliClient{t, []string{"-p", port, "-3"}} },
		"phpredis": func(t *testing.T) lockClient {
			rig.Need(t, rig.PHP, rig.Phpredis)
			return startTalker(t, "php", filepath.Join("clients", "php", "lockclient.php"), port)
		},
		"jedis RESP2": jedis("2"),
		"jedis RESP3": jedis("3"),
	} {
		t.Run(name, func(t *testing.T) {
			lockLife(t, c, connect(t), connect(t), "lock:client:"+filepath.Base(t.Name()))
		})
	}
}

// lockLife is the whole life of a lock: one client takes it, others are refused, only the
// owner extends and releases it. It is on a quorum while held and nowhere afterwards.
func lockLife(t *testing.T, c *rig.Cluster, first, second lockClient, key string) {
	const mine, theirs = "token-of-the-first-1", "token-of-the-second"
	want := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	wantOwner := func(client lockClient, want string) {
		t.Helper()
		if got := client.owner(key); got != want {
			t.Errorf("the owner is %q, want %q", got, want)
		}
	}
	wantOwner(first, "")
	want("first acquire", first.acquire(key, mine, time.Minute), true)
	c.WaitHeld(t, key, mine)
	want("second client acquires what is held", second.acquire(key, theirs, time.Minute), false)
	want("first client acquires again", first.acquire(key, "token-of-the-first-2", time.Minute), false)
	wantOwner(second, mine)
	want("foreign extension", second.extend(key, theirs, 10*time.Minute), false)
	want("extension", first.extend(key, mine, 10*time.Minute), true)
	extended := 0
	for _, master := range c.Masters {
		if left := master.Direct.PTTL(t.Context(), key).Val(); left > 5*time.Minute {
			extended++
		}
	}
	if extended < rig.Quorum {
		t.Errorf("extended on %d masters, want at least %d", extended, rig.Quorum)
	}
	want("foreign release", second.release(key, theirs), false)
	c.WaitHeld(t, key, mine)
	want("release", first.release(key, mine), true)
	c.WaitGone(t, key)
	want("release of what is gone", first.release(key, mine), false)
	want("second client acquires", second.acquire(key, theirs, time.Minute), true)
	c.WaitHeld(t, key, theirs)
	want("the old owner's release", first.release(key, mine), false)
	wantOwner(first, theirs)
	want("second client releases", second.release(key, theirs), true)
	c.WaitGone(t, key)
	if n := c.Upstream.Direct.Exists(t.Context(), key).Val(); n != 0 {
		t.Error("the lock reached the upstream")
	}
}

// goRedisClient is go-redis with hand-written lock code.
type goRedisClient struct {
	t      *testing.T
	client *redis.Client
}

func (g *goRedisClient) check(ok bool, err error) bool {
	g.t.Helper()
	if err != nil && !errors.Is(err, redis.Nil) {
		g.t.Fatal(err)
	}
	return ok
}

func (g *goRedisClient) acquire(key, token string, ttl time.Duration) bool {
	return g.check(g.client.SetNX(g.t.Context(), key, token, ttl).Result())
}

func (g *goRedisClient) owner(key string) string {
	owner, err := g.client.Get(g.t.Context(), key).Result()
	g.check(true, err)
	return owner
}

func (g *goRedisClient) extend(key, token string, ttl time.Duration) bool {
	n, err := redis.NewScript(corpus.ExtendScripts["pexpire"]).Run(g.t.Context(), g.client, []string{key}, token, ttl.Milliseconds()).Int()
	return g.check(n == 1, err)
}

func (g *goRedisClient) release(key, token string) bool {
	return g.check(rig.Release(g.t.Context(), g.client, key, token))
}

// redsyncClient is redsync in an application that has one Redis.
type redsyncClient struct {
	*goRedisClient
	rs *redsync.Redsync
}

func newRedsyncClient(t *testing.T, proxy *rig.Proxy) *redsyncClient {
	client := proxy.Client(t)
	return &redsyncClient{&goRedisClient{t, client}, redsync.New(goredis.NewPool(client))}
}

func (r *redsyncClient) mutex(key, token string, ttl time.Duration) *redsync.Mutex {
	return r.rs.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(ttl), redsync.WithValue(token),
		redsync.WithGenValueFunc(func() (string, error) { return token, nil }))
}

func (r *redsyncClient) acquire(key, token string, ttl time.Duration) bool {
	return r.settle(true, r.mutex(key, token, ttl).TryLockContext(r.t.Context()))
}

func (r *redsyncClient) extend(key, token string, ttl time.Duration) bool {
	return r.settle(r.mutex(key, token, ttl).ExtendContext(r.t.Context()))
}

func (r *redsyncClient) release(key, token string) bool {
	return r.settle(r.mutex(key, token, time.Minute).UnlockContext(r.t.Context()))
}

// settle tells a refusal, which redsync reports as an error, from a failure.
func (r *redsyncClient) settle(ok bool, err error) bool {
	r.t.Helper()
	var taken *redsync.ErrTaken
	switch {
	case errors.As(err, &taken), errors.Is(err, redsync.ErrLockAlreadyExpired), errors.Is(err, redsync.ErrExtendFailed):
		return false
	case err != nil:
		r.t.Fatalf("redsync: %v", err)
	}
	return ok
}

// TestPHPHearsOfADeadUpstream: phpredis answers false to an ERR, which a cache takes for a
// miss. It throws an exception for NOUPSTREAM. Locks go on.
func TestPHPHearsOfADeadUpstream(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.PHP, rig.Phpredis)
	c := rig.StartCluster(t, rig.Options{})
	c.Upstream.Kill()
	const script = `
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
try { var_dump($redis->get('plain')); } catch (RedisException $error) { echo $error->getMessage(), "\n"; }
var_dump($redis->set('lock:php', 'a token of sixteen bytes', ['nx', 'px' => 60000]));`
	out, err := exec.Command("php", "-r", script, fmt.Sprint(c.Proxy.Port)).CombinedOutput()
	const want = "NOUPSTREAM the upstream server of this proxy cannot be reached (deploy/INCIDENTS.md#noupstream)\nbool(true)\n"
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s", err, out)
	}
}
