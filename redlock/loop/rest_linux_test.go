package loop

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
)

// A task that rests is called again after each Unpark, wherever its turn ended, and none is lost.
func TestARestingTaskIsCalledAgain(t *testing.T) {
	const items = 20_000
	l := start(t)
	seed := layer.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	var produced atomic.Int64
	seen, turns := int64(0), 0
	done := make(chan struct{})
	task := l.Loop.Go(func(self *Task) (rests bool) {
		if !self.OnLoop() {
			t.Error("a turn began away from the loop")
		}
		turns++
		switch random.IntN(6) {
		case 0:
			self.Leave()
		case 1:
			self.Leave()
			self.Back()
		case 2:
			self.Park()
		}
		if seen = produced.Load(); seen < items {
			return true
		}
		close(done)
		return false
	})
	pause := rand.New(rand.NewPCG(seed, 2))
	for range items {
		produced.Add(1)
		task.Unpark()
		if pause.IntN(3) == 0 {
			runtime.Gosched()
		}
	}
	for { // a Park takes an Unpark, too
		select {
		case <-done:
			t.Logf("%d turns", turns)
			return
		default:
			task.Unpark()
			runtime.Gosched()
		}
	}
}

// Tasks that rest share the stacks that they need for their turns.
func TestRestingTasksHaveNoStack(t *testing.T) {
	const count = 2 * mostSpare
	l := start(t)
	l.flush(t)
	before := runtime.NumGoroutine() + 10 // some of the loop and of other tests begin or end
	var turns, grown atomic.Int64
	var over atomic.Bool
	var all []*Task
	for range count {
		all = append(all, l.Loop.Go(func(*Task) (rests bool) {
			grown.Add(int64(grow(100)))
			turns.Add(1)
			return !over.Load()
		}))
	}
	for round := range int64(3) {
		for turns.Load() < (round+1)*count {
			l.flush(t)
		}
		if now := runtime.NumGoroutine(); now > before+mostSpare {
			t.Errorf("%d goroutines for %d tasks", now-before, count)
		}
		over.Store(round == 1)
		for _, task := range all {
			task.Unpark()
		}
	}
	for deadline := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; l.Do(l.endUnused) {
		if l.flush(t); time.Now().After(deadline) {
			t.Fatal("coroutines that nobody needs do not end")
		}
	}
	l.stop()
	if turns.Load() != 3*count {
		t.Errorf("%d turns", turns.Load())
	}
}

// grow needs some KiB of stack.
func grow(depth int) int {
	if depth == 0 {
		return 0
	}
	var room [64]byte
	return grow(depth-1) + 1 + int(room[depth%len(room)])
}

// A task that yields goes on in the next round, after all others, and loses no Unpark.
func TestYieldLetsOthersRun(t *testing.T) {
	const others, turns = 10, 3
	l := start(t)
	ready, done := make(chan struct{}), make(chan struct{})
	var ran []int
	l.Do(func() { <-ready }) // all begin in one round
	for i := range others {
		l.Go(func(task *Task) {
			for range turns {
				ran = append(ran, i)
				task.Unpark()
				task.Yield()
				task.Park() // returns at once
			}
			if i == others-1 {
				close(done)
			}
		})
	}
	close(ready)
	waitFor(t, done, "the last task")
	for n, i := range ran {
		if i != n%others {
			t.Fatalf("they ran in this order: %v", ran)
		}
	}
}

// Run waits for tasks that rest, as for all others.
func TestRunUnparksRestingTasks(t *testing.T) {
	l := start(t)
	var turns atomic.Int64
	l.Loop.Go(func(*Task) (rests bool) { return turns.Add(1) < 2 })
	l.flush(t)
	l.stop()
	if turns.Load() != 2 {
		t.Errorf("%d turns", turns.Load())
	}
}
