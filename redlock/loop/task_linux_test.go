package loop

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"redlock-proxy/integration/layer"
)

// A task goes between the loop and a goroutine. This also holds that the loop does not lock its
// thread: the runtime would end the process.
func TestATaskMovesBetweenLoopAndGoroutine(t *testing.T) {
	moves := 100_000
	if testing.Short() {
		moves = 1000
	}
	l := start(t)
	done := make(chan struct{})
	sum := 0
	l.Go(func(task *Task) {
		defer close(done)
		for range moves {
			task.Leave()
			task.Leave()
			sum++
			if task.OnLoop() {
				t.Error("it did not leave")
			}
			task.Back()
			task.Back()
			sum++
			if !task.OnLoop() {
				t.Error("it did not come back")
			}
		}
	})
	waitFor(t, done, "the task")
	if sum != 2*moves {
		t.Errorf("%d steps", sum)
	}
}

// A caller that has locked its thread does no harm.
func TestATaskOfALockedThread(t *testing.T) {
	l := start(t)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		l.Go(func(task *Task) {
			defer close(done)
			task.Leave()
			task.Back()
		})
	}()
	waitFor(t, done, "the task")
}

// No Unpark is lost, wherever the task is. A lost one hangs the test.
func TestUnparkIsNeverLost(t *testing.T) {
	for name, places := range map[string]int{"loop": 0, "everywhere": 2} {
		t.Run(name, func(t *testing.T) {
			const items = 20_000
			l := start(t)
			seed := layer.Seed(t)
			var produced atomic.Int64
			var task atomic.Pointer[Task]
			ready, done := make(chan struct{}), make(chan struct{})
			l.Go(func(self *Task) {
				defer close(done)
				random := rand.New(rand.NewPCG(seed, 1))
				task.Store(self)
				close(ready)
				for seen := int64(0); seen < items; seen++ {
					for produced.Load() <= seen {
						switch random.IntN(6) {
						case places - 2:
							self.Leave()
						case places - 1:
							self.Back()
						}
						self.Park()
					}
				}
			})
			waitFor(t, ready, "the task's begin")
			random := rand.New(rand.NewPCG(seed, 2))
			for range items {
				produced.Add(1)
				task.Load().Unpark()
				if random.IntN(3) == 0 {
					runtime.Gosched()
				}
			}
			waitFor(t, done, "the task")
		})
	}
}

func TestUnparkBeforePark(t *testing.T) {
	l := start(t)
	done := make(chan struct{})
	l.Go(func(task *Task) {
		task.Unpark()
		task.Park()
		task.Unpark()
		task.Leave()
		task.Park()
		task.Unpark()
		task.Back()
		task.Park()
		close(done)
	})
	waitFor(t, done, "the task")
}

func TestATasksPanicEndsIt(t *testing.T) {
	for name, leave := range map[string]bool{"on the loop": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			l := start(t)
			l.Go(func(task *Task) {
				if leave {
					task.Leave()
				}
				panic("broken task")
			})
			l.Do(func() { panic("broken function") })
			l.flush(t)
			l.stop()
			for _, want := range []string{"broken task", "broken function", "task_linux_test.go"} {
				if !strings.Contains(l.log.String(), want) {
					t.Errorf("the log does not have %q: %s", want, l.log)
				}
			}
		})
	}
}

// A runtime.Goexit, such as t.Fatal in a test, ends one task or one socket, and the loop goes on.
func TestGoexitEndsNothingElse(t *testing.T) {
	l := start(t)
	others, _ := startEcho(t, l, "tcp")
	for range 3 {
		l.Go(func(*Task) { runtime.Goexit() })
		l.Go(func(task *Task) { task.Park(); task.Leave(); runtime.Goexit() }).Unpark()
		l.Do(runtime.Goexit)
		l.AtEnd(runtime.Goexit)
		r := newRecorder()
		r.received = func([]byte) { runtime.Goexit() }
		_, theirs := l.adopt(t, "tcp", r)
		_, _ = theirs.Write([]byte("x"))
		r.untilEnded(t, ErrPanicked)
		l.flush(t)
	}
	others.socket.Close()
	l.stop()
	if log := l.log.String(); !strings.Contains(log, "runtime.Goexit") {
		t.Errorf("nothing is logged: %s", log)
	}
}

// Run unparks each task when its context has ended, and waits for all.
func TestRunWaitsForItsTasks(t *testing.T) {
	l := start(t)
	ctx, cancel := context.WithCancel(context.Background())
	var ended atomic.Int64
	var parked sync.WaitGroup
	for i := range 100 {
		parked.Add(1)
		l.Go(func(task *Task) {
			defer ended.Add(1)
			if i%2 == 0 {
				task.Leave()
			}
			parked.Done()
			for ctx.Err() == nil {
				task.Park()
			}
			task.Leave()
			runtime.Gosched()
			task.Back()
		})
	}
	parked.Wait()
	cancel()
	l.stop()
	if ended.Load() != 100 {
		t.Errorf("%d tasks ended before Run", ended.Load())
	}
}

func TestContextCarriesTheTask(t *testing.T) {
	task := new(Task)
	if ctx := NewContext(t.Context(), task); FromContext(ctx) != task || FromContext(t.Context()) != nil {
		t.Error("wrong task")
	}
	var none *Task
	none.Leave()
	none.Back()
	if none.OnLoop() {
		t.Error("no task is on the loop")
	}
}

// Functions run in the order of Do, many more than fit into a round.
func TestOrderOfDo(t *testing.T) {
	l := start(t)
	var got []int
	for i := range 5 * mostTurns {
		l.Do(func() { got = append(got, i) })
	}
	l.flush(t)
	for i, n := range got {
		if i != n {
			t.Fatalf("function %d ran as number %d", n, i)
		}
	}
	if len(got) != 5*mostTurns {
		t.Errorf("%d functions ran", len(got))
	}
}
