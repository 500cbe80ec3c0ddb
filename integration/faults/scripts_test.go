package faults

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestUnchangedScriptStaysGranted: a script was granted and left the lock as it was. The
// proxy must not mistake it for one to undo.
func TestUnchangedScriptStaysGranted(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	client := c.Proxy.Client(t)
	for name, text := range map[string]string{
		"reads only":        "if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end return 0",
		"writes the same":   "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[1], 'KEEPTTL') return 1 end return 0",
		"absent or mine":    "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 60000) or redis.call('get', KEYS[1]) == ARGV[1] then return 1 end return 0",
		"same end":          "redis.call('pexpireat', KEYS[1], redis.call('pexpiretime', KEYS[1])) return 1",
		"deletes and makes": "local d, p = redis.call('dump', KEYS[1]), redis.call('pttl', KEYS[1]) redis.call('del', KEYS[1]) redis.call('restore', KEYS[1], p, d) return 1",
	} {
		t.Run(name, func(t *testing.T) {
			const token = "token-of-the-one-holder"
			rig.MustAcquire(t, client, "lock:same", token, time.Minute)
			for range 20 {
				n, err := client.Eval(t.Context(), text, []string{"lock:same"}, token).Int()
				if n != 1 || err != nil {
					t.Fatalf("the script answers %d, %v", n, err)
				}
			}
			rig.WaitFor(t, "every master holds it", func() error {
				if n := c.Holders(t, "lock:same", token); n != rig.MasterCount {
					return fmt.Errorf("%d of %d do", n, rig.MasterCount)
				}
				return nil
			})
			for _, master := range c.Masters {
				if left := master.Direct.PTTL(t.Context(), "lock:same").Val(); left < 20*time.Second || left > time.Minute {
					t.Errorf("%s has %s left", master.Name, left)
				}
			}
			rig.MustRelease(t, client, "lock:same", token)
			c.WaitGone(t, "lock:same")
		})
	}
}

// TestHealthyMastersStayAlike: while all masters answer, every master executes a client's
// commands on a key, in order, even if the key is more than a plain lock. So the masters
// never drift apart.
func TestHealthyMastersStayAlike(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	plain := rig.StartServer(t, "plain")
	client := c.Proxy.Client(t)
	for round := range 10 {
		key := fmt.Sprintf("lock:alike:%d", round)
		for _, do := range []*redis.Client{client, plain.Direct} {
			for i := range 50 {
				if err := do.HIncrBy(t.Context(), key, fmt.Sprint("field", i%7), int64(i)).Err(); err != nil {
					t.Fatalf("round %d, HINCRBY %d: %v", round, i, err)
				}
				if i%20 == 19 && round%2 == 0 {
					if n, err := do.Del(t.Context(), key).Result(); n != 1 || err != nil {
						t.Fatalf("round %d, DEL: %d %v", round, n, err)
					}
				}
			}
		}
		if err := c.WaitStates(t, plain, []string{key}); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}
