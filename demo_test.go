package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/layer"
	"redlock-proxy/proxy/config"
)

// Five masters and an upstream answer. The end leaves neither processes nor files.
func TestServersStartAndEnd(t *testing.T) {
	layer.Program(t, "redis-server", "redis-server")
	t.Setenv("TMPDIR", t.TempDir())
	cfg := config.Demo()
	end, err := prepareDemo(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Masters.Servers) != config.EmbeddedMasters || cfg.Masters.Embedded || cfg.Upstream.Kind != config.UpstreamServer || !cfg.NewSet {
		t.Errorf("the configuration is %+v", cfg)
	}
	ask := func(server config.DemoServer) error {
		client := redis.NewClient(&redis.Options{Addr: server.Address, MaxRetries: -1, DialTimeout: time.Minute})
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	seen := map[string]bool{}
	for _, server := range cfg.DemoServers {
		if err := ask(server); err != nil {
			t.Errorf("%s: %v", server.Name, err)
		}
		seen[server.Address] = true
	}
	if len(seen) != config.EmbeddedMasters+1 {
		t.Errorf("the servers are at %v", seen)
	}
	end()
	for _, server := range cfg.DemoServers {
		if process, err := os.FindProcess(server.PID); err == nil && process.Signal(syscall.Signal(0)) == nil {
			t.Errorf("%s still runs", server.Name)
		}
	}
	nothingLeft(t)
}

// A program that ends at once is an error that names the server, and leaves nothing.
func TestAServerThatCannotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for program, want := range map[string]string{
		"/bin/false":      "the master 1 of -demo ended at once: exit status 1",
		"/does/not/exist": "cannot start the master 1 of -demo",
	} {
		if _, err := startDemo(t.Context(), program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", program, err)
		}
	}
	nothingLeft(t)
}

func nothingLeft(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Without a program the servers stay embedded.
func TestEmbeddedIfNothingIsInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cfg := config.Demo()
	end, err := prepareDemo(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if !cfg.Masters.Embedded || cfg.Upstream.Kind != config.UpstreamEmbedded || len(cfg.DemoServers) > 0 {
		t.Errorf("the configuration is %+v", cfg)
	}
}

// An address that is in use is left to its user.
func TestAvailable(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if address, err := available(taken.Addr().String()); err != nil || address == taken.Addr().String() || !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("instead of an address in use: %s, %v", address, err)
	}
}
