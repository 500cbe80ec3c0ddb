package session

import (
	"errors"
	"net"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/loop"
)

// adopted runs body as a task with one end of a connection, which the loop reads into an input.
// It returns the other end.
func adopted(t *testing.T, budget *Budget, body func(*loop.Task, *input)) net.Conn {
	t.Helper()
	l := proxytest.Loop(t)
	far, near := proxytest.Pair(t)
	in := &input{budget: budget, busy: new(busyTimer), most: 1 << 20}
	ended := make(chan struct{})
	l.Go(func(task *loop.Task) (rests bool) {
		defer close(ended)
		sock, err := l.Adopt(near, in)
		if err != nil {
			t.Error(err)
			return false
		}
		defer sock.Close()
		in.begin(sock, task)
		body(task, in)
		return false
	})
	t.Cleanup(func() { <-ended })
	return far
}

// A busy session's input is not read ahead while memory is short. When the session waits for
// input, it is read, though memory is still short.
func TestInputIsReadWhereMemoryIsShort(t *testing.T) {
	budget := NewBudget(func() int64 { return 100 })
	budget.Use(200)
	paused, got := make(chan struct{}), make(chan string, 1)
	client := adopted(t, budget, func(task *loop.Task, in *input) {
		task.Leave()
		for in.arrived() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(paused)
		task.Back()
		text := ""
		for len(text) < len("first second") {
			err := in.fill()
			if errors.Is(err, errNothing) {
				task.Park()
				in.endFill()
			} else if err != nil {
				text += err.Error()
				break
			}
			text += string(in.unread())
			in.start += len(in.unread())
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
	client := adopted(t, NewBudget(func() int64 { return 1 << 30 }), func(task *loop.Task, in *input) {
		defer close(done)
		defer in.release()
		for len(in.unread()) < length {
			in.need = length
			if err := in.fill(); errors.Is(err, errNothing) {
				task.Park()
				in.endFill()
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

// Of a client that does not read, little is read ahead, until somebody must see whether it leaves.
func TestLittleIsReadAheadBeforeTheBusyTimer(t *testing.T) {
	const sent = 200_000
	budget := NewBudget(func() int64 { return 1 << 20 })
	done := make(chan struct{})
	client := adopted(t, budget, func(task *loop.Task, in *input) {
		defer close(done)
		defer in.release()
		task.Leave()
		isPaused := func() bool {
			in.mu.Lock()
			defer in.mu.Unlock()
			return in.paused
		}
		for !isPaused() {
			time.Sleep(time.Millisecond)
		}
		if n := in.arrived(); n < aheadAtFirst || n > 2*aheadAtFirst {
			t.Errorf("%d bytes were read ahead", n)
		}
		in.readFar(true)
		for in.arrived() < sent {
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
