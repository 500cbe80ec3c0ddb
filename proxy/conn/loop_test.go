package conn

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/loop"
)

// adopted runs body as a task with one end of a connection, which the loop reads into an input.
// It returns the other end.
func adopted(t *testing.T, budget *Budget, body func(*loop.Task, *Input)) net.Conn {
	t.Helper()
	l := proxytest.Loop(t)
	far, near := proxytest.Pair(t)
	in := NewInput(budget)
	in.SetLimit(1 << 20)
	ended := make(chan struct{})
	l.Go(func(task *loop.Task) (rests bool) {
		defer close(ended)
		sock, err := Adopt(near, l, task, new(Clock), in)
		if err != nil {
			t.Error(err)
			return false
		}
		defer sock.Close()
		in.Begin(sock, NewBusyTimer(in, deafSession{}))
		body(task, in)
		return false
	})
	t.Cleanup(func() { <-ended })
	return far
}

// deafSession is a session that is told of nothing.
type deafSession struct{}

func (deafSession) Flush()       {}
func (deafSession) ClientEnded() {}
func (deafSession) ClientLeft()  {}
func (deafSession) Panicked(any) {}

// A busy session's input is not read ahead while memory is short. When the session waits for
// input, it is read, though memory is still short.
func TestInputIsReadWhereMemoryIsShort(t *testing.T) {
	budget := NewBudget(func() int64 { return 100 })
	budget.Use(200)
	paused, got := make(chan struct{}), make(chan string, 1)
	client := adopted(t, budget, func(task *loop.Task, in *Input) {
		task.Leave()
		for in.Arrived() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(paused)
		task.Back()
		text := ""
		for len(text) < len("first second") {
			err := in.Fill()
			if errors.Is(err, ErrNothing) {
				task.Park()
				in.EndFill()
			} else if err != nil {
				text += err.Error()
				break
			}
			text += string(in.Unread())
			in.Consume(len(in.Unread()))
		}
		got <- text
	})
	for i, part := range []string{"first ", "second"} {
		if i > 0 {
			<-paused
		}
		if _, err := client.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case text := <-got:
		if text != "first second" {
			t.Errorf("got %q", text)
		}
	case <-time.After(time.Minute):
		t.Error("what came later was never read")
	}
}

// A session is not woken before it can do something: a long command has come, or its buffer is full.
func TestLongCommandWakesItsSessionSeldom(t *testing.T) {
	const length = 900_000
	turns, done := 0, make(chan struct{})
	client := adopted(t, NewBudget(func() int64 { return 1 << 30 }), func(task *loop.Task, in *Input) {
		defer close(done)
		defer in.Release()
		for len(in.Unread()) < length {
			in.Expect(length)
			if err := in.Fill(); errors.Is(err, ErrNothing) {
				task.Park()
				in.EndFill()
				turns++
			} else if err != nil {
				t.Error(err)
				return
			}
		}
	})
	if _, err := client.Write(make([]byte, length)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it does not come")
	}
	if turns > 6 {
		t.Errorf("the session is woken %d times", turns)
	}
}

// What is long is not copied whole into a socket's buffer, also behind something else and where two goroutines
// pump it.
func TestLongCommandIsNotBufferedTwice(t *testing.T) {
	for name, pair := range map[string]func() (near, far net.Conn){
		"polled": func() (near, far net.Conn) { return proxytest.Pair(t) },
		"pumped": net.Pipe,
	} {
		l := proxytest.Loop(t)
		near, far := pair()
		long := bytes.Repeat([]byte("x"), 1<<20)
		begun, sent := make(chan *Socket, 1), make(chan struct{})
		l.Go(func(task *loop.Task) (rests bool) {
			defer close(sent)
			sock, err := Adopt(near, l, task, new(Clock), proxytest.Deaf{})
			if err != nil {
				t.Error(err)
				return false
			}
			begun <- sock
			_ = sock.Append([]byte("first"))
			sock.Send(long)
			_ = sock.Append([]byte("last"))
			sock.AwaitSent()
			return false
		})
		got := make([]byte, len("first")+len(long)+len("last"))
		sock := <-begun
		if _, err := io.ReadFull(far, got[:10]); err != nil || name == "pumped" && sock.Waiting() > mostWaiting {
			t.Errorf("%s: %v, and %d bytes wait", name, err, sock.Waiting())
		}
		if _, err := io.ReadFull(far, got[10:]); err != nil || string(got) != "first"+string(long)+"last" {
			t.Errorf("%s: %v, or other bytes come", name, err)
		}
		<-sent
		_ = far.Close()
		sock.Close()
	}
}

// Of a client that does not read, little is read ahead, until somebody must see whether it leaves.
func TestLittleIsReadAheadBeforeTheBusyTimer(t *testing.T) {
	const sent = 200_000
	budget := NewBudget(func() int64 { return 1 << 20 })
	done := make(chan struct{})
	client := adopted(t, budget, func(task *loop.Task, in *Input) {
		defer close(done)
		defer in.Release()
		task.Leave()
		isPaused := func() bool {
			in.mu.Lock()
			defer in.mu.Unlock()
			return in.paused
		}
		for !isPaused() {
			time.Sleep(time.Millisecond)
		}
		if n := in.Arrived(); n < aheadAtFirst || n > 2*aheadAtFirst {
			t.Errorf("%d bytes were read ahead", n)
		}
		in.readFar(true)
		for in.Arrived() < sent {
			time.Sleep(time.Millisecond)
		}
	})
	if _, err := client.Write(make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("not all was read")
	}
}
