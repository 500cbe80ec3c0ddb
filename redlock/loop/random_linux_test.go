package loop

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
)

// A copier is a task that sends back what comes. It pauses its socket when it has too much, waits
// for a slow reader, and goes to a goroutine and back at random.
type copier struct {
	random *rand.Rand
	task   *Task
	socket *Socket

	mu    sync.Mutex
	input []byte
	ended []error
}

func (c *copier) Received(p []byte) {
	c.mu.Lock()
	c.input = append(c.input, p...)
	if len(c.input) > 64<<10 {
		c.socket.Pause() // with the lock held, or it could come after the Resume
	}
	c.mu.Unlock()
	c.task.Unpark()
}

func (c *copier) Ended(err error) { c.note(func() { c.ended = append(c.ended, err) }) }

func (c *copier) note(f func()) {
	c.mu.Lock()
	f()
	c.mu.Unlock()
	c.task.Unpark()
}

func (c *copier) parkUntil(ok func() bool) {
	for {
		c.mu.Lock()
		yes := ok()
		c.mu.Unlock()
		if yes {
			return
		}
		c.wander()
		c.task.Park()
	}
}

// wander goes to a goroutine or back to the loop, or stays.
func (c *copier) wander() {
	switch c.random.IntN(6) {
	case 0:
		c.task.Leave()
	case 1:
		c.task.Back()
	}
}

func (c *copier) run(*Task) {
	for {
		c.parkUntil(func() bool { return len(c.input) > 0 || len(c.ended) > 0 })
		c.mu.Lock()
		input := c.input
		c.input = nil
		c.socket.Resume()
		c.mu.Unlock()
		if len(input) == 0 {
			break
		}
		for len(input) > 0 {
			n := 1 + c.random.IntN(len(input))
			_ = c.socket.Write(input[:n])
			c.socket.AwaitDrained(c.task, 100<<10)
			input = input[n:]
			c.wander()
		}
	}
	c.socket.AwaitDrained(c.task, 0)
	if c.random.IntN(2) == 0 {
		c.socket.CloseWrite()
	}
	c.socket.Close()
	c.parkUntil(func() bool { return c.ended[len(c.ended)-1] != io.EOF })
}

// visit sends random bytes to a copier, ends, and checks what comes back.
func visit(c net.Conn, random *rand.Rand, breaks bool) error {
	want := make([]byte, random.IntN(400<<10))
	for i := range want {
		want[i] = byte(random.Uint32())
	}
	sizes := rand.New(rand.NewPCG(random.Uint64(), 0))
	go func() {
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 1+sizes.IntN(50_000))
			if _, err := c.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		if tcp, ok := c.(interface{ CloseWrite() error }); ok && !breaks {
			_ = tcp.CloseWrite()
		}
	}()
	if breaks {
		_, _ = io.CopyN(io.Discard, c, int64(random.IntN(len(want)+1)))
		return c.Close()
	}
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	got, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%d bytes came back for %d, or others", len(got), len(want))
	}
	return err
}

// Many copiers at once, some of whose clients leave at any moment.
func TestRandomTraffic(t *testing.T) {
	forEachNetwork(t, func(t *testing.T, network string) {
		seed := layer.Seed(t)
		l := start(t)
		var wg sync.WaitGroup
		for i := range uint64(24) {
			ours, theirs := pair(t, network)
			c := &copier{random: rand.New(rand.NewPCG(seed, i))}
			var err error
			if c.socket, err = l.Adopt(ours, c); err != nil {
				t.Fatal(err)
			}
			begin := make(chan struct{})
			c.task = l.Go(func(task *Task) { task.Leave(); <-begin; task.Back(); c.run(task) })
			close(begin)
			c.socket.Resume()
			wg.Go(func() {
				if err := visit(theirs, rand.New(rand.NewPCG(seed, 1000+i)), i%4 == 0); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		l.stop() // returns when all copiers have ended
		if log := l.log.String(); bytes.Contains([]byte(log), []byte("panic")) {
			t.Error(log)
		}
	})
}
