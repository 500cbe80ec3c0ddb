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

// Of those that wait for votes after a change of the masters, one asks for all. It may leave
// before the others, and then another one asks. Nobody waits for votes that cannot come.
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
				s.settle(0, left)
				took[i] = time.Since(began)
			})
			synctest.Wait() // the first one asks
		}
		waiting.Wait()
		if want := [3]time.Duration{100 * time.Millisecond, 5*time.Second + settlingLook, 300 * time.Millisecond}; took != want {
			t.Errorf("they waited for %v, want %v", took, want)
		}
		if s.polls.ended != nil {
			t.Error("somebody still asks")
		}
		end()
		s.Wait()
	})
}

func TestOnlyOneOfThoseThatWaitAsks(t *testing.T) {
	var p polls
	_, first := p.begin()
	ended, second := p.begin()
	if !first || second {
		t.Errorf("the first asks: %v, the second asks: %v", first, second)
	}
	p.end()
	<-ended
	if _, third := p.begin(); !third {
		t.Error("nobody asks after the first")
	}
}
