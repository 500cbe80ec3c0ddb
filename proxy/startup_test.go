package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// A proxy that has just started knows its masters only in a moment, and holds
// lock commands back until then. To a client its restart is a pause.
func TestLocksRightAfterTheStart(t *testing.T) {
	servers := startGuardRedises(t, 4)
	r := startReloadable(t, servers[3], servers[:3]...)
	client := dialTest(t, "tcp", r.listener.Addr().String())
	client.ask("SET lock:a me NX PX 60000\r\n", "+OK\r\n")
	for _, commands := range []struct{ ask, want string }{
		{"SET lock:b me NX PX 60000\r\n", "+OK\r\n"},
		{"SET lock:a you NX PX 60000\r\n", "$-1\r\n"},
		{"MULTI\r\nGET lock:a\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n$2\r\nme\r\n"},
		{"WATCH lock:a\r\nUNWATCH\r\n", "+OK\r\n+OK\r\n"},
		{"SELECT 3\r\nSET lock:a me NX PX 60000\r\nDEL lock:a\r\n", "+OK\r\n+OK\r\n:1\r\n"},
	} {
		t.Run(strings.Fields(commands.ask)[0], func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Load(r.file, config.Flags{})
			if err != nil {
				t.Fatal(err)
			}
			cfg.MasterTimeout = 1300 * time.Millisecond // shorter than a clock is watched
			p, err := New(cfg, slog.New(slog.DiscardHandler), new(slog.LevelVar), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Serve(ctx) }()
			fresh := dialTest(t, "tcp", p.listener.Addr().String())
			fresh.ask(commands.ask, commands.want)
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	}
}

// The first moments end when a quorum votes, when it is known that none will
// soon, when the process ends, and after a while.
func TestTheFirstMomentsEnd(t *testing.T) {
	states := func(text string) redlock.Status {
		status := redlock.Status{Needed: 3}
		for word := range strings.FieldsSeq(text) {
			for _, state := range []redlock.MasterState{redlock.Unreachable, redlock.Starting, redlock.Quarantined, redlock.Voting, redlock.Rejected} {
				if state.String() == word {
					status.Masters = append(status.Masters, redlock.MasterStatus{State: state})
				}
			}
		}
		return status
	}
	for _, row := range []struct {
		then string
		want time.Duration
	}{
		{"voting voting voting unreachable unreachable", time.Second},
		{"voting voting starting unreachable unreachable", startPatience},
		{"voting voting voting starting unreachable", startPatience},
		{"quarantined quarantined rejected unreachable unreachable", time.Second},
		{"quarantined quarantined starting starting voting", startPatience},
		{"unreachable unreachable unreachable unreachable unreachable", startPatience},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			over := afterStart(t.Context(), func() redlock.Status {
				if time.Since(begun) < time.Second {
					return states("unreachable starting starting starting unreachable")
				}
				return states(row.then)
			})
			if <-over; time.Since(begun).Round(10*time.Millisecond) != row.want {
				t.Errorf("%s: it ended after %v", row.then, time.Since(begun))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		<-afterStart(ctx, func() redlock.Status { return redlock.Status{Needed: 1} })
		if time.Since(begun) != 0 {
			t.Error("who has gone is waited for")
		}
	})
}

// A new set begins in quarantine. Every answer says so, until when, and what to do. After
// that step locks can be taken at once.
func TestANewSetSaysSo(t *testing.T) {
	t.Parallel() // it waits most of its time
	servers := startGuardRedises(t, 3)
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: none\nmaster_timeout: 500ms\nrestart_delay: 10m\nmasters:\n"
	for _, server := range servers {
		text += "  - unix://" + server.Socket + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(isNew bool) (p *Proxy, log *proxytest.Log, stop func()) {
		cfg, err := config.Load(file, config.Flags{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.NewSet = isNew
		log = &proxytest.Log{}
		logger, level := config.NewLogger(cfg, log)
		if p, err = New(cfg, logger, level, prometheus.NewRegistry()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- p.Serve(ctx) }()
		return p, log, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	}
	p, log, stop := start(false)
	const notice, then = "new set of masters: locks can be granted from 20", "; start once with -new if no lock can be held on them yet"
	banner := p.Banner()
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	reply := fmt.Sprint(client.SetNX(t.Context(), "lock:a", "me", time.Minute).Err())
	if !strings.HasPrefix(reply, "QUORUMLOST ") {
		t.Errorf("the reply is %q", reply)
	}
	eventually(t, "the log says it", func() bool { return strings.Contains(log.String(), notice) })
	for where, text := range map[string]string{"the banner": banner, "the reply": reply, "/readyz": p.readiness().text, "the log": log.String()} {
		if !strings.Contains(text, notice) || !strings.Contains(text, then) {
			t.Errorf("%s says nothing of the new set:\n%s", where, text)
		}
	}
	client.Close()
	stop()
	p, _, stop = start(true)
	client = redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	defer client.Close()
	waitReady(t, p)
	if won, err := client.SetNX(t.Context(), "lock:a", "me", time.Minute).Result(); !won || err != nil || strings.Contains(p.Banner(), "new set") {
		t.Errorf("with -new: %v, %v", won, err)
	}
	stop()
}
