package embedded

import (
	"context"
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

// DUMP and RESTORE leave nothing behind.
func TestEmbeddedDumpForgets(t *testing.T) {
	server := startTestEmbedded(t)
	client := embeddedTestClient(t, server, 2)
	client.Set(t.Context(), "k", "v", 0)
	for range 10 {
		if err := client.RestoreReplace(t.Context(), "k", 0, client.Dump(t.Context(), "k").Val()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	server.answers.mu.Lock()
	defer server.answers.mu.Unlock()
	if n := len(server.answers.inMulti); n > 0 {
		t.Errorf("%d connections are remembered", n)
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
