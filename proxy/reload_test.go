package proxy

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
)

// reloadable is a whole proxy over real servers whose file can be rewritten.
type reloadable struct {
	*Proxy
	t    *testing.T
	file string
	base string
	log  *proxytest.Log
}

func startReloadable(t *testing.T, upstream *proxytest.Redis, masters ...*proxytest.Redis) *reloadable {
	t.Helper()
	r := &reloadable{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), log: &proxytest.Log{}}
	r.base = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: unix://" + upstream.Socket + "\nmasters:\n"
	for _, master := range masters {
		r.base += "  - unix://" + master.Socket + "\n"
	}
	r.base += "master_timeout: 2s\nrestart_delay: 4s\nlocks:\n  - match: \"lock:*\"\n"
	r.write(r.base)
	cfg, err := config.Load(r.file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.NewSet = true
	log, level := config.NewLogger(cfg, r.log)
	if r.Proxy, err = New(cfg, log, level, prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	waitReady(t, r.Proxy)
	return r
}

func (r *reloadable) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload writes the file with one thing replaced, or something added to its
// end, and reloads it.
func (r *reloadable) reload(from, to string) error {
	r.t.Helper()
	if from == "" {
		r.write(r.base + to)
	} else {
		r.write(strings.Replace(r.base, from, to, 1))
	}
	_, err := r.Reload(r.t.Context(), false)
	return err
}

func (r *reloadable) metric(name string) string {
	r.t.Helper()
	_, body := fetch(r.t, "http://"+r.web.Addr().String()+"/metrics")
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func startGuardRedises(t *testing.T, n int) []*proxytest.Redis {
	t.Helper()
	servers := make([]*proxytest.Redis, n)
	for i := range servers {
		servers[i] = proxytest.StartRedis(t)
	}
	return servers
}

// A process that is told to end does not wait for a reload, not even for one
// that hangs with its file.
func TestTheEndDoesNotWaitForAReload(t *testing.T) {
	cfg := config.Demo()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Source = filepath.Join(t.TempDir(), "config.yaml")
	if err := syscall.Mkfifo(cfg.Source, 0o600); err != nil { // who reads it waits for who writes
		t.Fatal(err)
	}
	log, level := config.NewLogger(cfg, io.Discard)
	p, err := New(cfg, log, level, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	reloaded := make(chan error, 1)
	go func() {
		_, err := p.Reload(context.Background(), false)
		reloaded <- err
	}()
	var writer *os.File
	for writer == nil {
		// It can be opened when somebody reads.
		writer, _ = os.OpenFile(cfg.Source, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(over) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
	case <-time.After(patience):
		t.Error("the process waits for a reload")
	}
	writer.Write([]byte("upstream: none\nmasters: embedded\n"))
	writer.Close()
	if err := <-reloaded; err == nil {
		t.Error("a process that had ended was reloaded")
	}
}

// A reload asks a server once, to judge it, and what the process shows of it comes from the same answers.
func TestAReloadAsksEachMasterOnce(t *testing.T) {
	master := proxytest.StartRedis(t)
	r := startReloadable(t, proxytest.StartRedis(t), master)
	asked := func() (calls int) {
		_, stats, _ := strings.Cut(master.Ask(t, "INFO commandstats"), "cmdstat_config|get:calls=")
		if _, err := fmt.Sscanf(stats, "%d", &calls); err != nil {
			t.Fatal(err)
		}
		return calls
	}
	before, answers := asked(), r.monitor.Answers()
	if err := r.reload("master_timeout: 2s", "master_timeout: 1s"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the answers are in use", func() bool { return r.monitor.Answers() > answers })
	if n := asked() - before; n != 2 { // for its databases and for its save points
		t.Errorf("it was asked %d times for settings", n)
	}
}
