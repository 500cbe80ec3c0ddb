package rdb

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a real redis-server, for what only a real one can say.
type server struct {
	t      *testing.T
	client *redis.Client
}

// startServer starts redis-server and ends it with the test. A machine without it
// fails the test.
func startServer(t *testing.T) server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("these tests need redis-server: %v", err)
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	command := exec.Command(path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	t.Cleanup(func() {
		client.Close()
		command.Process.Kill()
		command.Wait()
	})
	for deadline := time.Now().Add(time.Minute); client.Ping(t.Context()).Err() != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not answer")
		}
	}
	return server{t, client}
}

// must runs a command that has to succeed.
func (s server) must(args ...string) any {
	s.t.Helper()
	command := make([]any, len(args))
	for i, arg := range args {
		command[i] = arg
	}
	reply, err := s.client.Do(context.Background(), command...).Result()
	if err != nil && err != redis.Nil {
		s.t.Fatalf("%.40q: %v", args, err)
	}
	return reply
}

// dump is the key's payload, nil if it is absent.
func (s server) dump(key string) []byte {
	s.t.Helper()
	if payload, ok := s.must("DUMP", key).(string); ok {
		return []byte(payload)
	}
	return nil
}
