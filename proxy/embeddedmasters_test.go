package proxy

import (
	"reflect"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"

	"github.com/redis/go-redis/v9"
)

// Embedded masters hold what libraries keep locks in: commands on lock keys
// that have no form of their own are run, and a conflicting one is refused by
// the reply of one Redis.
func TestEmbeddedMastersKnowEveryType(t *testing.T) {
	cfg := config.Demo()
	cfg.MasterTimeout = patience
	p, _ := startWholeProxy(t, cfg)
	waitReady(t, p)
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	defer client.Close()
	for _, step := range []struct {
		Command []any
		want    any
	}{
		{[]any{"HINCRBY", "lock:h", "me", 1}, int64(1)},
		{[]any{"PEXPIRE", "lock:h", 60000}, int64(1)},
		{[]any{"HINCRBY", "lock:h", "me", 1}, int64(2)},
		{[]any{"HGET", "lock:h", "me"}, "2"},
		{[]any{"SET", "lock:h", "x", "NX"}, nil},
		{[]any{"DEL", "lock:h"}, int64(1)},
		{[]any{"EXISTS", "lock:h"}, int64(0)},
		{[]any{"RPUSH", "lock:l", "a", "b"}, int64(2)},
		{[]any{"LPOP", "lock:l"}, "a"},
		{[]any{"LPOP", "lock:l"}, "b"},
		{[]any{"SADD", "lock:s", "a"}, int64(1)},
		{[]any{"SISMEMBER", "lock:s", "a"}, int64(1)},
		{[]any{"SREM", "lock:s", "a"}, int64(1)},
		{[]any{"ZADD", "lock:z", 1, "a", 2, "b"}, int64(2)},
		{[]any{"ZRANGE", "lock:z", 0, -1}, []any{"a", "b"}},
		{[]any{"DEL", "lock:z"}, int64(1)},
		{[]any{"EVAL", "redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return nil", 1, "lock:e", "me", 60000}, nil},
		{[]any{"HKEYS", "lock:e"}, []any{"me"}},
		{[]any{"RENAME", "lock:e", "lock:f"}, "OK"},
		{[]any{"UNLINK", "lock:f"}, int64(1)},
	} {
		got, err := client.Do(ctx, step.Command...).Result()
		if err != nil && err != redis.Nil || !reflect.DeepEqual(got, step.want) {
			t.Fatalf("%v answers %v, %v; want %v", step.Command, got, err, step.want)
		}
	}
}

// The effects of a run that was not won are undone exactly on embedded masters.
func TestEmbeddedMastersUndo(t *testing.T) {
	cfg := config.Demo()
	cfg.MasterTimeout = patience
	p, _ := startWholeProxy(t, cfg)
	waitReady(t, p)
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	defer client.Close()
	if err := client.HSet(t.Context(), "lock:h", "a", "1", "b", "2").Err(); err != nil {
		t.Fatal(err)
	}
	const differs = "redis.call('HSET', KEYS[1], 'at', redis.call('TIME')[2]) redis.call('PEXPIRE', KEYS[1], 60000) return 1"
	for _, key := range []string{"lock:h", "lock:absent"} {
		if err := client.Eval(t.Context(), differs, []string{key}).Err(); err == nil {
			t.Fatalf("%s: a run that differs on every master is won", key)
		}
	}
	want := map[string]string{"a": "1", "b": "2"}
	for _, master := range p.embedded {
		if !strings.HasPrefix(master.Name(), "embedded-") {
			continue
		}
		direct := redis.NewClient(&redis.Options{Addr: master.Address(), MaxRetries: -1})
		defer direct.Close()
		eventually(t, master.Name()+" is as it was", func() bool { // what is put back is queued before the client hears
			got := direct.HGetAll(t.Context(), "lock:h").Val()
			return reflect.DeepEqual(got, want) && direct.PTTL(t.Context(), "lock:h").Val() == -1 && direct.Exists(t.Context(), "lock:absent").Val() == 0
		})
	}
}
