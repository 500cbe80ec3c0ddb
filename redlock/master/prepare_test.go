package master

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock/roster"
)

type nobody struct{}

func (nobody) Queued(string, int)            {}
func (nobody) Standing(roster.MasterStatus)  {}
func (nobody) Forgot(string, roster.Amnesia) {}

// unanswered dials a master in vain. So nobody knows whether it will vote.
func unanswered(ctx context.Context) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// newSet makes a Set of masters that are dialled so.
func newSet(ctx context.Context, dials ...func(context.Context) (net.Conn, error)) *Set {
	var servers []Server
	for _, dial := range dials {
		servers = append(servers, Server{Name: "m", Dial: dial})
	}
	return New(ctx, Options{Servers: servers, Limits: Limits{Limits: roster.Limits{MasterTimeout: 5 * time.Second}}, Log: slog.New(slog.DiscardHandler), Observer: nobody{}, Slept: func() time.Duration { return 0 }})
}

// Those that wait for votes after a change of the masters may leave. Nobody waits for votes that cannot come.
func TestThoseThatWaitAfterAChangeOfTheMastersMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newSet(ctx, unanswered, unanswered, unanswered)
		began := time.Now()
		s.voters.learned.Store(&began)
		var waiting sync.WaitGroup
		var took [3]time.Duration
		for i, leaves := range []time.Duration{100 * time.Millisecond, 0, 300 * time.Millisecond} {
			waiting.Go(func() {
				left := make(chan struct{})
				if leaves > 0 {
					time.AfterFunc(leaves, func() { close(left) })
				}
				s.Prepare(0, left)
				took[i] = time.Since(began)
			})
		}
		waiting.Wait()
		if want := [3]time.Duration{100 * time.Millisecond, 5 * time.Second, 300 * time.Millisecond}; took != want {
			t.Errorf("they waited for %v, want %v", took, want)
		}
		end()
		s.Wait()
	})
}
