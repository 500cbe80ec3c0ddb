package embedded

import (
	"context"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/proxytest"
)

// holdings has a key of every type that lock libraries use: a command that writes it,
// and a command that reads it.
var holdings = []struct{ write, read []any }{
	{[]any{"SET", "k", "token"}, []any{"GET", "k"}},
	{[]any{"SET", "k", ""}, []any{"GET", "k"}},
	{[]any{"SET", "k", "-12"}, []any{"GET", "k"}},
	{[]any{"SET", "k", "\x00\r\n\xff"}, []any{"GET", "k"}},
	{[]any{"SET", "k", strings.Repeat("x", 64)}, []any{"GET", "k"}},
	{[]any{"SET", "k", strings.Repeat("x", 20_000)}, []any{"GET", "k"}},
	{[]any{"RPUSH", "k", "a", "b", "a", ""}, []any{"LRANGE", "k", "0", "-1"}},
	{[]any{"SADD", "k", "b", "a", "7"}, []any{"SORT", "k", "ALPHA"}},
	{[]any{"HSET", "k", "f", "1", "e", "22"}, []any{"HGET", "k", "e"}},
	{[]any{"ZADD", "k", "1.5", "b", "-3", "a", "1700000000000", "c", "+inf", "d"}, []any{"ZRANGE", "k", "0", "-1", "WITHSCORES"}},
}

// shows returns the content of the key. It sorts the members of a set itself,
// because miniredis has no SORT.
func shows(t *testing.T, client *redis.Client, read []any) any {
	t.Helper()
	if read[0] == "SORT" {
		members, err := client.SMembers(t.Context(), "k").Result()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(members)
		return members
	}
	return done(t, client, read...)
}

func done(t *testing.T, client *redis.Client, command ...any) any {
	t.Helper()
	reply, err := client.Do(t.Context(), command...).Result()
	if err != nil {
		t.Fatalf("%.80q: %v", command, err)
	}
	return reply
}

// RESTORE brings back what was dumped: as a single command, in a transaction, and in a
// script.
func TestEmbeddedDumpAndRestore(t *testing.T) {
	ctx := t.Context()
	client := embeddedTestClient(t, startTestEmbedded(t), 2)
	for _, holding := range holdings {
		done(t, client, "DEL", "k")
		if err := client.Dump(ctx, "k").Err(); err != redis.Nil {
			t.Fatalf("DUMP of nothing: %v", err)
		}
		done(t, client, holding.write...)
		want := shows(t, client, holding.read)
		dump, err := client.Dump(ctx, "k").Result()
		if err != nil {
			t.Fatalf("%.80q: %v", holding.write, err)
		}
		restore := map[string]func() error{
			"by itself": func() error { return client.Restore(ctx, "k", 0, dump).Err() },
			"in MULTI": func() error {
				_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Restore(ctx, "k", 0, dump).Err() })
				return err
			},
			"by a script": func() error {
				return client.Eval(ctx, "return redis.call('RESTORE', KEYS[1], 0, ARGV[1])", []string{"k"}, dump).Err()
			},
		}
		for how, restore := range restore {
			done(t, client, "DEL", "k")
			if err := restore(); err != nil {
				t.Fatalf("%.80q restored %s: %v", holding.write, how, err)
			}
			if got := shows(t, client, holding.read); !reflect.DeepEqual(got, want) {
				t.Errorf("%.80q restored %s shows %.100v, not %.100v", holding.write, how, got, want)
			}
			var queued *redis.StringCmd
			if _, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error { queued = pipe.Dump(ctx, "k"); return nil }); err != nil || queued.Val() != dump {
				t.Errorf("%.80q dumped in MULTI differs: %v", holding.write, err)
			}
			if same, err := client.Eval(ctx, "return redis.call('DUMP', KEYS[1]) == ARGV[1] and 1 or 0", []string{"k"}, dump).Int(); same != 1 || err != nil {
				t.Errorf("%.80q dumped by a script differs: %v", holding.write, err)
			}
		}
	}
}

// A real server restores what an embedded one dumps.
func TestEmbeddedPayloadsAreRedisOnes(t *testing.T) {
	socket := proxytest.StartRedis(t).Socket
	real := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Dialer: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}})
	defer real.Close()
	client := embeddedTestClient(t, startTestEmbedded(t), 2)
	for _, holding := range holdings {
		done(t, client, "DEL", "k")
		done(t, client, holding.write...)
		done(t, real, "RESTORE", "k", "0", done(t, client, "DUMP", "k"), "REPLACE")
		got := shows(t, real, holding.read)
		done(t, real, "DEL", "k")
		done(t, real, holding.write...)
		if want := shows(t, real, holding.read); !reflect.DeepEqual(got, want) {
			t.Errorf("%.80q shows %.100v there, not %.100v", holding.write, got, want)
		}
	}
}

// DUMP and RESTORE leave nothing behind.
func TestEmbeddedDumpForgets(t *testing.T) {
	server := startTestEmbedded(t)
	client := embeddedTestClient(t, server, 2)
	done(t, client, "SET", "k", "v")
	for range 10 {
		dump := done(t, client, "DUMP", "k")
		done(t, client, "RESTORE", "k", "0", dump, "REPLACE")
	}
	server.answers.mu.Lock()
	defer server.answers.mu.Unlock()
	if n := len(server.answers.inMulti); n > 0 {
		t.Errorf("%d connections are remembered", n)
	}
}

// RESTORE has Redis's options, and refuses what Redis refuses.
func TestEmbeddedRestoreOptions(t *testing.T) {
	ctx := t.Context()
	client := embeddedTestClient(t, startTestEmbedded(t), 2)
	done(t, client, "HSET", "k", "f", "v")
	dump, _ := client.Dump(ctx, "k").Result()
	later := time.Now().Add(time.Hour)
	for _, step := range []struct {
		options []any
		want    string // the reply, or the beginning of an error
		ttl     time.Duration
	}{
		{[]any{"0", dump}, "BUSYKEY", -1},
		{[]any{"60000", dump, "REPLACE"}, "OK", time.Minute},
		{[]any{later.UnixMilli(), dump, "replace", "absttl"}, "OK", time.Hour},
		{[]any{"0", dump, "REPLACE"}, "OK", -1},
		{[]any{"-1", dump, "REPLACE"}, "ERR Invalid TTL", -1},
		{[]any{"x", dump, "REPLACE"}, "ERR value is not an integer", -1},
		{[]any{"0", dump, "NONSENSE"}, "ERR syntax error", -1},
		{[]any{"0", "value", "REPLACE"}, "ERR DUMP payload version or checksum are wrong", -1},
		{[]any{"0", dump[:len(dump)-1] + "x", "REPLACE"}, "ERR DUMP payload version or checksum are wrong", -1},
	} {
		reply, err := client.Do(ctx, append([]any{"RESTORE", "k"}, step.options...)...).Text()
		if err != nil {
			reply = err.Error()
		}
		if !strings.HasPrefix(reply, step.want) {
			t.Errorf("RESTORE %.60q answers %q, not %q", step.options, reply, step.want)
		}
		ttl := client.PTTL(ctx, "k").Val()
		if ttl < 0 {
			ttl = -1
		}
		if off := step.ttl - ttl; off < 0 || off > 30*time.Second {
			t.Errorf("RESTORE %.60q leaves a TTL of %s, not %s", step.options, ttl, step.ttl)
		}
	}
	for _, command := range [][]any{{"DUMP"}, {"DUMP", "a", "b"}, {"RESTORE", "k", "0"}} {
		if err := client.Do(ctx, command...).Err(); err == nil || !strings.HasPrefix(err.Error(), "ERR wrong number of arguments") {
			t.Errorf("%v: %v", command, err)
		}
	}
}
