package embedded

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func startTestEmbedded(t *testing.T) *Server {
	t.Helper()
	server, err := Start("embedded-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

func embeddedTestClient(t *testing.T, server *Server, protocol int) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: server.Address(), Protocol: protocol, MaxRetries: -1, ContextTimeoutEnabled: true, DisableIdentity: true}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// A TTL expires by itself, and not early.
func TestEmbeddedTTLExpires(t *testing.T) {
	ctx := t.Context()
	client := embeddedTestClient(t, startTestEmbedded(t), 2)
	const ttl = 60 * time.Millisecond
	before := time.Now()
	if ok, err := client.SetNX(ctx, "lock:a", "v", ttl).Result(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	after := time.Now()
	for {
		asked := time.Now()
		n, err := client.Exists(ctx, "lock:a").Result()
		if err != nil {
			t.Fatal(err)
		}
		answered := time.Now()
		switch {
		case n == 0 && answered.Before(before.Add(ttl)):
			t.Fatalf("gone after %s of %s", answered.Sub(before), ttl)
		case n == 1 && asked.After(after.Add(ttl)):
			t.Fatalf("still there after %s of %s", asked.Sub(after), ttl)
		case n == 0:
			return
		}
	}
}

// The answers to the questions of clients and of proxy/inspect have the right form.
func TestEmbeddedAnswersConnecting(t *testing.T) {
	ctx := t.Context()
	server := startTestEmbedded(t)
	for protocol := 2; protocol <= 3; protocol++ {
		client := embeddedTestClient(t, server, protocol)
		info, err := client.Info(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"redis_version:7.0.0\r\n", "loading:0\r\n", "role:master\r\n", "redis_mode:standalone\r\n", "maxmemory_policy:noeviction\r\n", "cluster_enabled:0\r\n"} {
			if !strings.Contains(info, want) {
				t.Errorf("INFO lacks %q", want)
			}
		}
		if info, err = client.Info(ctx, "server").Result(); err != nil || !strings.HasPrefix(info, "# Server\r\n") || strings.Contains(info, "# Clients") {
			t.Errorf("INFO server: %q, %v", info, err)
		}
		settings, err := client.ConfigGet(ctx, "d*s").Result()
		if err != nil || len(settings) != 1 || settings["databases"] != "16" {
			t.Errorf("CONFIG GET d*s: %v, %v", settings, err)
		}
		for _, command := range []string{"CLIENT SETINFO LIB-NAME x", "CLIENT NO-EVICT on", "CLIENT NO-TOUCH on", "CLIENT SETNAME me", "HELLO 3", "COMMAND", "COMMAND DOCS"} {
			var args []any
			for word := range strings.FieldsSeq(command) {
				args = append(args, word)
			}
			if err := client.Do(ctx, args...).Err(); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		}
		for _, command := range [][]any{{"CONFIG", "SET", "a", "b"}, {"CONFIG"}, {"CLIENT", "ID"}, {"CLIENT", "TRACKING", "ON"}, {"CLIENT", "NONSENSE"}, {"HELLO", "4"}, {"READONLY"}} {
			if err := client.Do(ctx, command...).Err(); err == nil {
				t.Errorf("%v: no error", command)
			}
		}
	}
}

// Inside MULTI only miniredis may answer, or replies no longer match their commands.
func TestEmbeddedMultiKeepsStep(t *testing.T) {
	ctx := t.Context()
	client := embeddedTestClient(t, startTestEmbedded(t), 2)
	conn := client.Conn()
	defer conn.Close()
	for _, step := range []struct {
		Command []any
		want    string
	}{
		{[]any{"MULTI"}, "OK"},
		{[]any{"SET", "a", "b"}, "QUEUED"},
		{[]any{"CLIENT", "GETNAME"}, "QUEUED"},
		{[]any{"INFO", "server"}, "QUEUED"},
		{[]any{"DISCARD"}, "OK"},
		{[]any{"PING"}, "PONG"},
	} {
		if got, err := conn.Do(ctx, step.Command...).Text(); got != step.want || err != nil {
			t.Fatalf("%v: %q, %v", step.Command, got, err)
		}
	}
	if text, err := conn.Info(ctx, "server").Result(); err != nil || !strings.Contains(text, Version) {
		t.Errorf("after DISCARD: %q, %v", text, err)
	}
}

// A script that calls INFO or CLIENT holds miniredis's lock; the answer must not need it.
func TestEmbeddedAnswersInScripts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := embeddedTestClient(t, startTestEmbedded(t), 2)
	text, err := client.Eval(ctx, "return redis.call('INFO', 'server')", nil).Text()
	if err != nil || !strings.Contains(text, Version) {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestEmbeddedCloseIsBounded(t *testing.T) {
	server, err := Start("embedded-1")
	if err != nil {
		t.Fatal(err)
	}
	client := embeddedTestClient(t, server, 2)
	blocked := make(chan error, 1)
	go func() { blocked <- client.BLPop(context.Background(), 0, "list").Err() }()
	server.Close()
	if err := <-blocked; err == nil {
		t.Error("BLPOP returned without an error")
	}
}
