package sim

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock/loop"
)

// inWorld runs f in the World of a seed.
func inWorld(t *testing.T, seed uint64, f func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := NewWorld(seed)
		w.Run(func() { f(t, w) })
		w.Close()
	})
}

// What happens at one moment happens in an order that the seed decides, and always in the same.
func TestASeedDecidesTheOrder(t *testing.T) {
	order := func(seed uint64) (got string) {
		inWorld(t, seed, func(t *testing.T, w *World) {
			var all sync.WaitGroup
			l := w.Loop(nil)
			for i := range 8 {
				l.Spawn(&all, func() {
					w.Wait(time.Second)
					got += fmt.Sprint(i)
				})
			}
			l.Join(&all)
		})
		return got
	}
	seen := map[string]bool{}
	for seed := range uint64(20) {
		first := order(seed)
		if again := order(seed); again != first || len(first) != 8 {
			t.Errorf("seed %d: %s, then %s", seed, first, again)
		}
		seen[first] = true
	}
	if len(seen) < 15 {
		t.Errorf("20 seeds give %d orders", len(seen))
	}
}

// A Wait ends with the first channel that is ready, or when its time is over, as on a real loop.
func TestWaits(t *testing.T) {
	check := func(t *testing.T, wait func(time.Duration, ...<-chan struct{}) int, after func(time.Duration, func())) {
		never, soon, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
		close(closed)
		began := time.Now()
		after(2*time.Second, func() { close(soon) })
		for _, row := range []struct {
			d    time.Duration
			on   []<-chan struct{}
			want int
			took time.Duration
		}{
			{0, nil, loop.Late, 0},
			{-1, []<-chan struct{}{never, closed}, 1, 0},
			{time.Second, []<-chan struct{}{nil, never}, loop.Late, time.Second},
			{loop.Forever, []<-chan struct{}{never, nil, soon}, 2, 2 * time.Second},
			{loop.Forever, []<-chan struct{}{soon, closed}, 0, 2 * time.Second},
		} {
			if got, took := wait(row.d, row.on...), time.Since(began); got != row.want || took != row.took {
				t.Errorf("%v: %d after %v, want %d after %v", row.d, got, took, row.want, row.took)
			}
		}
	}
	t.Run("world", func(t *testing.T) {
		inWorld(t, 1, func(t *testing.T, w *World) { check(t, w.Wait, func(d time.Duration, f func()) { w.After(d, f) }) })
	})
	t.Run("real", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { check(t, (*loop.Loop)(nil).Wait, (*loop.Loop)(nil).After) })
	})
}

// A context that ends by itself or by its cancel calls what was asked for, unless that was stopped.
func TestTheEndOfAContextIsTold(t *testing.T) {
	var told []string
	inWorld(t, 1, func(t *testing.T, w *World) {
		l := w.Loop(nil)
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.OnEnd(limited, func() { told = append(told, fmt.Sprint("time ", limited.Err())) })
		stop := l.OnEnd(limited, func() { told = append(told, "stopped") })
		cancelled, end := context.WithCancel(t.Context())
		l.OnEnd(cancelled, func() { told = append(told, fmt.Sprint("cancel ", cancelled.Err())) })
		if !stop() || stop() {
			t.Error("stop says something else")
		}
		end()
		w.Wait(2 * time.Second)
	})
	if want := []string{"cancel context canceled", "time context deadline exceeded"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A toyConn is a Simulated connection to a toy master, which answers each byte at once.
type toyConn struct {
	net.Conn
	world  *World
	unread []byte
	told   func()
	closed bool
}

func (c *toyConn) LocalAddr() net.Addr  { return nil }
func (c *toyConn) RemoteAddr() net.Addr { return nil }
func (c *toyConn) Close() error         { c.closed = true; return nil }
func (c *toyConn) Tell(f func())        { c.told = f }

func (c *toyConn) Write(p []byte) (int, error) {
	c.world.After(time.Millisecond, func() {
		c.unread = append(c.unread, strings.ToUpper(string(p))...)
		c.told()
	})
	return len(p), nil
}

func (c *toyConn) Take(p []byte) (n int, err error) {
	n = copy(p, c.unread)
	c.unread = c.unread[n:]
	if n == 0 && c.closed {
		err = io.EOF
	}
	return n, err
}

type toyReceiver struct {
	task *loop.Task
	got  string
	end  error
}

func (r *toyReceiver) Received(p []byte) { r.got += string(p); r.task.Unpark() }
func (r *toyReceiver) Ended(err error)   { r.end = err; r.task.Unpark() }

// A task of a World's loop asks over a socket and parks, leaves and comes back.
func TestATaskOfAWorldAsks(t *testing.T) {
	inWorld(t, 1, func(t *testing.T, w *World) {
		l, done := w.Loop(nil), make(chan struct{})
		c, r := &toyConn{world: w}, &toyReceiver{}
		socket, err := l.Adopt(c, r)
		if err != nil {
			t.Fatal(err)
		}
		socket.Resume()
		began := time.Now()
		r.task = l.Go(func(task *loop.Task) bool {
			defer close(done)
			_ = socket.Write([]byte("a question"))
			for r.got == "" {
				task.Park()
			}
			task.Leave()
			l.Wait(time.Second)
			task.Back()
			socket.Close()
			for r.end == nil {
				task.Park()
			}
			return false
		})
		w.Wait(loop.Forever, done)
		if took := time.Since(began); r.got != "A QUESTION" || !c.closed || took != time.Second+time.Millisecond {
			t.Errorf("got %q after %v, closed: %v", r.got, took, c.closed)
		}
		w.Wait(time.Second)
	})
}
