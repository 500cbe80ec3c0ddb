package proxytest

import (
	"log/slog"
	"testing"

	"redlock-proxy/redlock/loop"
)

// Loop is a loop that runs until the test ends.
func Loop(t testing.TB) *loop.Loop {
	t.Helper()
	l, end, err := loop.Start(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return l
}

// Task is a task that has left the loop until the test ends. One goroutine of the test at a time may
// do as the task.
func Task(t testing.TB, l *loop.Loop) *loop.Task {
	t.Helper()
	left, over := make(chan *loop.Task), make(chan struct{})
	l.Go(func(task *loop.Task) (rests bool) {
		task.Leave()
		left <- task
		<-over
		return false
	})
	t.Cleanup(func() { close(over) })
	return <-left
}

// Deaf is a loop.Receiver that ignores what it gets.
type Deaf struct{}

func (Deaf) Received([]byte) {}
func (Deaf) Ended(error)     {}
