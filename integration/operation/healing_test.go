package operation

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// healPatience bounds the wait for a pass of healing. A busy machine makes passes
// incomplete, and each is repeated after a while.
const healPatience = 4 * time.Minute

// TestHealedRollingRestart restarts five masters one by one without their data, as the
// handbook says for healing. Every lock is still there at the end, on every master: with a
// TTL and without, strings, the structures of Redisson's locks, and their counters.
func TestHealedRollingRestart(t *testing.T) {
	t.Parallel()
	plain := rig.NewServer(t, "plain")
	plain.Start(t)
	c := rig.StartServers(t)
	p := c.AddProxy(t, rig.Options{
		RestartDelay: 4 * time.Second, MaxQuarantine: 4 * time.Second,
		Rules: []string{"lock:*"}, More: "heal: {every: 3s, rate: 1000, size: 1mb}\n", LogLevel: "info",
	})
	lease := strconv.FormatInt((30 * time.Minute).Milliseconds(), 10)
	commands := [][]any{
		{"SET", "lock:permanent", "the token of its holder", "NX"},
		{"SET", "lock:leased", "the token of another holder", "NX", "PX", lease},
		{"EVAL", corpus.HashLock, 1, "lock:hash", lease, "id:1"}, // RLock, entered twice
		{"EVAL", corpus.HashLock, 1, "lock:hash", lease, "id:1"},
		{"INCR", "redisson_lock_token:{lock:hash}"}, // RFencedLock's counter
		{"INCR", "redisson_lock_token:{lock:hash}"},
		{"SETNX", "lock:semaphore", "5"}, // RSemaphore
		{"DECR", "lock:semaphore"},
		{"HSET", "lock:shared", "mode", "read", "id:1", "1", "id:2", "1"}, // RReadWriteLock
		{"SET", "{lock:shared}:id:1:rwlock_timeout:1", "1", "PX", lease},
		{"RPUSH", "redisson_lock_queue:{lock:fair}", "id:2", "id:3"}, // a fair lock's waiters
		{"ZADD", "redisson_lock_timeout:{lock:fair}", "9000000000000", "id:2"},
	}
	keys := []string{
		"lock:permanent", "lock:leased", "lock:hash", "redisson_lock_token:{lock:hash}", "lock:semaphore", "lock:shared",
		"{lock:shared}:id:1:rwlock_timeout:1", "redisson_lock_queue:{lock:fair}", "redisson_lock_timeout:{lock:fair}",
	}
	client := p.Client(t)
	for _, command := range commands {
		plain.Direct.Do(t.Context(), command...)
		if err := client.Do(t.Context(), command...).Err(); err != nil && err != redis.Nil {
			t.Fatalf("%v: %v", command[:2], err)
		}
		if err := c.WaitQuorumStates(t, plain, keys); err != nil {
			t.Fatalf("%v: %v", command[:2], err)
		}
	}
	tokens := growing{client: client}
	tokens.take(t)
	for _, master := range c.Masters {
		if _, err := master.Proc.Stop(rig.Patience); err != nil {
			t.Fatal(err)
		}
		p.WaitState(t, master, "unreachable")
		master.Start(t)
		p.WaitState(t, master, "voting")
		waitHealed(t, p, time.Now())
		tokens.take(t)
	}
	if err := c.WaitStates(t, plain, keys); err != nil {
		t.Error(err)
	}
	for _, master := range c.Masters {
		if n := p.Metric(t, fmt.Sprintf("redlock_healed_copies_total{master=%q,result=\"written\"}", master.Addr())); n == "0" {
			t.Errorf("%s was given no copy", master.Name)
		}
	}
	if n := client.Incr(t.Context(), "redisson_lock_token:{lock:hash}").Val(); n != 3 {
		t.Errorf("the counter of the fenced lock went on with %d, want 3", n)
	}
	rig.MustRelease(t, client, "lock:permanent", "the token of its holder")
	rig.MustRelease(t, client, "lock:leased", "the token of another holder")
	c.WaitGone(t, "lock:permanent")
	c.WaitGone(t, "lock:leased")
}

// growing takes numbers that may only grow.
type growing struct {
	client        *redis.Client
	token, fenced int64
}

// take takes a fencing token, and the token that Redisson's fenced lock gives each holder.
func (g *growing) take(t *testing.T) {
	t.Helper()
	token, err := g.client.Do(t.Context(), "REDLOCK", "TOKEN", "lock:permanent", "the token of its holder").Int64()
	if err != nil || token <= g.token {
		t.Errorf("the fencing token %d after %d: %v", token, g.token, err)
	}
	lock, id := "lock:fenced", "a-uuid-of-many-bytes:1"
	reply, err := g.client.Eval(t.Context(), corpus.HashFenced, []string{lock, "redisson_lock_token:{" + lock + "}"}, rig.LongTTL.Milliseconds(), id).Int64Slice()
	if err != nil || len(reply) != 2 || reply[1] <= g.fenced {
		t.Errorf("the fenced lock answers %v after %d: %v", reply, g.fenced, err)
	} else {
		g.fenced = reply[1]
	}
	g.token = token
	if n, err := g.client.Eval(t.Context(), corpus.HashUnlock, []string{lock, "redisson_lock__channel:{" + lock + "}"}, "0", rig.LongTTL.Milliseconds(), id).Int(); n != 1 || err != nil {
		t.Errorf("the release of the fenced lock answers %d: %v", n, err)
	}
}

// waitHealed waits for a complete pass of healing that began at some time or later.
func waitHealed(t *testing.T, p *rig.Proxy, from time.Time) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		at, err := strconv.ParseFloat(p.Metric(t, "redlock_heal_complete_timestamp_seconds"), 64)
		if err == nil && at >= float64(from.UnixMilli())/1000 {
			return
		}
		if time.Since(began) > healPatience {
			t.Fatalf("no complete pass of healing began in %v:\n%s", healPatience, p.Proc.Log.Tail(20))
		}
	}
}
