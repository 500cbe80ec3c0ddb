package loop

import (
	"io"
	"net"
	"testing"
)

// An echo is a task that answers what its socket gets.
type echo struct {
	task   *Task
	socket *Socket
	input  []byte
	over   bool
}

func (e *echo) Received(p []byte) {
	e.input = append(e.input[:0], p...)
	e.task.Unpark()
}
func (e *echo) Ended(error) {
	e.over = true
	e.task.Unpark()
}

func nothing() {}

func (e *echo) run(task *Task) {
	for !e.over {
		if len(e.input) > 0 {
			_ = e.socket.Write(e.input)
			e.socket.WhenDrained(0, nothing)
			e.input = e.input[:0]
		}
		task.Park()
	}
	e.socket.Close()
}

func startEcho(t testing.TB, l *running, network string) (*echo, net.Conn) {
	t.Helper()
	ours, theirs := pair(t, network)
	return adoptEcho(t, l, ours), theirs
}

func adoptEcho(t testing.TB, l *running, ours net.Conn) *echo {
	t.Helper()
	e := &echo{}
	var err error
	if e.socket, err = l.Adopt(ours, e); err != nil {
		t.Fatal(err)
	}
	if e.task = l.Go(e.run); e.task == nil {
		t.Fatal("the loop has ended")
	}
	e.socket.Resume()
	return e
}

// Reading, resuming a task, writing and being told of the end of that allocate nothing.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	l := start(t)
	_, theirs := startEcho(t, l, "tcp")
	question, answer := []byte("ping"), make([]byte, 4)
	turn := func() {
		if _, err := theirs.Write(question); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(theirs, answer); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		turn()
	}
	if n := testing.AllocsPerRun(2000, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
	theirs.Close()
}

func BenchmarkEcho(b *testing.B) {
	for _, network := range []string{"tcp", "pumped", "tls", "pumped tls"} {
		b.Run(network, func(b *testing.B) { benchmarkEcho(b, network) })
	}
}

func benchmarkEcho(b *testing.B, network string) {
	l := start(b)
	_, theirs := startEcho(b, l, network)
	defer theirs.Close()
	p := []byte("ping")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = theirs.Write(p)
		_, _ = io.ReadFull(theirs, p)
	}
}

func BenchmarkLeaveAndBack(b *testing.B) {
	l := start(b)
	done := make(chan struct{})
	b.ReportAllocs()
	l.Go(func(t *Task) {
		defer close(done)
		for b.Loop() {
			t.Leave()
			t.Back()
		}
	})
	<-done
}
