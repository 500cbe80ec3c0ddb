package loop

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A World takes the place of the kernel, of goroutines, time and chance, for a loop and for all that waits around
// it. Package sim has one, for tests: there everything runs in one thread, in virtual time and in an order that a
// seed decides. A loop without a World uses the real ones.
type World interface {
	Wait(d time.Duration, on ...<-chan struct{}) int
	Spawn(l *Loop, of *sync.WaitGroup, f func())
	Join(of *sync.WaitGroup)
	AfterFunc(d time.Duration, f func())
	OnEnd(ctx context.Context, f func()) (stop func() bool)
	Draw() uint64
	Hash(text string) uint64
	// Left is told of a task that has left its loop. The World calls its Continue.
	Left(t *Task)
	// Running is the task that runs away from its loop, or nil.
	Running() *Task
	// Panicked is given what recover returned.
	Panicked(reason any)
}

// NewIn makes a loop of a World, which calls Step after each wake, and Finish at last. Its connections must be Simulated.
func NewIn(w World, wake func(), log *slog.Logger) *Loop {
	l := newLoop(log, sleeper{wakeUp: wake})
	l.world, l.asleep = w, true
	return l
}

// Step runs a round. It returns false if the next one has to wait for a wake.
func (l *Loop) Step() (more bool) {
	l.step()
	return l.hasWork() || !l.fallAsleep()
}

// Finish lets go of the stacks.
func (l *Loop) Finish() { l.closeAll() }

// Away makes a task that runs f away from the loop, by Continue.
func (l *Loop) Away(f func()) *Task {
	t := &Task{loop: l, away: true, on: l.takeCoroutine(), turn: func(*Task) bool { f(); return false }}
	t.on.task = t
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link(t)
	return t
}

// Continue runs a task that is away until it calls Suspend, goes back or ends.
func (t *Task) Continue() {
	c := t.on
	c.resume()
	switch {
	case c.over:
		t.loop.keepCoroutine(c)
		t.endTurn(c.rests)
	case !t.away:
		t.enqueue()
	}
}

// Suspend returns at the next Continue. The task itself calls it.
func (t *Task) Suspend() { t.on.yield(struct{}{}) }

// Simulated is a connection whose bytes are kept in memory. Write never waits.
type Simulated interface {
	net.Conn
	// Take is Read, but returns 0 and nil if nothing is there.
	Take(p []byte) (int, error)
	// Tell has f called whenever there may be more to take. f must be called as an Event.
	Tell(f func())
}

// A simulated is the source below a Simulated.
type simulated struct {
	conn   Simulated
	socket *Socket
}

func (m *simulated) begin() {
	m.socket.readable, m.socket.untold = true, true
	m.conn.Tell(func() {
		m.socket.loop.news(m.socket, true, false, false)
		m.socket.loop.poll.wake()
	})
}

func (m *simulated) read(p []byte) (int, error) {
	n, err := m.conn.Take(p)
	switch {
	case n > 0 || err == io.EOF:
		return n, nil
	case err == nil:
		return 0, errAgain
	}
	return 0, err
}

func (m *simulated) write(p []byte) (int, error) { return m.conn.Write(p) }
func (m *simulated) wait(bool) error             { return nil }
func (m *simulated) lingers() bool               { return false }
func (m *simulated) shutWrite()                  {}
func (m *simulated) control(func(fd uintptr))    {}

func (m *simulated) close(bool) (unused bool) {
	_ = m.conn.Close()
	return true
}
