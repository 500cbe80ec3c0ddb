package proxy

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock"

	"github.com/prometheus/client_golang/prometheus"
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
		cfg, err := Load(r.file)
		if err != nil {
			t.Fatal(err)
		}
		cfg.MasterTimeout = 500 * time.Millisecond // shorter than a clock is watched
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
	}
}

// The first moments end when a quorum votes, when it is known that none will
// soon, when the process ends, and after two seconds.
func TestTheFirstMomentsEnd(t *testing.T) {
	states := func(text string) redlock.Status {
		status := redlock.Status{Needed: 3}
		for word := range strings.FieldsSeq(text) {
			for _, state := range masterStates {
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
		{"certified certified certified away away", time.Second},
		{"certified certified uncertified away away", startPatience},
		{"quarantined quarantined barred away away", time.Second},
		{"quarantined quarantined uncertified uncertified certified", startPatience},
		{"away away away away away", startPatience},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			over := afterStart(t.Context(), func() redlock.Status {
				if time.Since(begun) < time.Second {
					return states("away uncertified uncertified uncertified away")
				}
				return states(row.then)
			})
			p := &lockPlane{starting: over}
			if p.awaitStart(t.Context()); time.Since(begun).Round(10*time.Millisecond) != row.want {
				t.Errorf("%s: it ended after %v", row.then, time.Since(begun))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		(&lockPlane{starting: make(chan struct{})}).awaitStart(ctx) // a client that has gone
		<-afterStart(ctx, func() redlock.Status { return redlock.Status{Needed: 1} })
		if time.Since(begun) != 0 {
			t.Error("who has gone is waited for")
		}
	})
}
