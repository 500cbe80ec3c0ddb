package loop

import (
	"context"
	"sync/atomic"
)

// A Task is sequential code. Its loop runs it until it parks, and again when it was unparked.
// Only Unpark may be called by others than the task itself.
type Task struct {
	loop   *Loop
	state  atomic.Uint32            // taskRunning and so on
	away   bool                     // a goroutine of its own runs it
	turn   func(*Task) (rests bool) // the code
	on     *coroutine               // runs the turn; nil: none has begun, or the task rests
	signal chan struct{}            // ends a Park away from the loop; made by the first
	later  bool                     // GoLater began it
	doing  string

	before, after *Task // in Loop.tasks
}

const (
	taskRunning  uint32 = iota // or queued to run
	taskNotified               // unparked, so the next Park returns at once
	taskParked                 // waits for the loop to resume it, or rests
	taskBlocked                // waits for its signal
)

// Go runs turn as a task of the loop and returns at once. If turn returns true, the task rests: it
// has no stack until an Unpark, after which the loop calls turn again. Go returns nil if the loop
// has ended, and then turn is not called.
func (l *Loop) Go(turn func(*Task) (rests bool)) *Task { return l.begin(&Task{loop: l, turn: turn}) }

// GoLater is Go for a task that gives way: its turns do not delay those of tasks of Go by more than a few.
// Tasks of GoLater run in the order in which they were begun or unparked.
func (l *Loop) GoLater(turn func(*Task) (rests bool)) *Task {
	return l.begin(&Task{loop: l, turn: turn, later: true})
}

func (l *Loop) begin(t *Task) *Task {
	if !l.enqueue(func(q *queue) { q.add(t); l.link(t) }) {
		return nil
	}
	return t
}

// Park returns after an Unpark, or without reason. It returns at once if the task was unparked
// since its last Park. The caller looks again at what it waits for.
func (t *Task) Park() {
	waiting := taskParked
	if t.away {
		waiting = taskBlocked
		if t.signal == nil {
			t.signal = make(chan struct{}, 1)
		}
	}
	if !t.state.CompareAndSwap(taskRunning, waiting) {
		t.state.Store(taskRunning)
		return
	}
	if t.away {
		t.loop.Wait(Forever, t.signal)
		return
	}
	t.on.yield(struct{}{})
	t.state.Store(taskRunning)
}

// Unpark ends a Park, or the next one. Any goroutine may call it. It does nothing for nil.
func (t *Task) Unpark() {
	if t == nil {
		return
	}
	for {
		switch state := t.state.Load(); state {
		case taskNotified:
			return
		case taskRunning:
			if t.state.CompareAndSwap(state, taskNotified) {
				return
			}
		case taskParked:
			if t.state.CompareAndSwap(state, taskNotified) {
				t.enqueue()
				return
			}
		case taskBlocked:
			if t.state.CompareAndSwap(state, taskRunning) {
				t.signal <- struct{}{}
				return
			}
		}
	}
}

func (t *Task) enqueue() { t.loop.enqueue(func(q *queue) { q.add(t) }) }

// Yield lets everything else run that is to be done in this round. It does nothing away from the
// loop.
func (t *Task) Yield() {
	if t.OnLoop() && t.loop.AtEnd(t.on.again) {
		t.on.yield(struct{}{})
	}
}

// Leave has a goroutine of its own run the task from now on, so it may block. It does nothing for
// a task that left already, and for nil.
func (t *Task) Leave() {
	if t == nil || t.away {
		return
	}
	t.away = true
	t.on.yield(struct{}{})
}

// Back has the loop run the task again. It does nothing for a task that the loop runs, and for nil.
func (t *Task) Back() {
	if t == nil || !t.away {
		return
	}
	t.away = false
	t.on.yield(struct{}{})
}

// OnLoop tells whether the loop runs the task, so that it must not block. Only the task may ask.
func (t *Task) OnLoop() bool { return t != nil && !t.away }

// Running returns the task that a World runs away from its loop, or nil. What serves a task without
// having been told of it finds it so, and can Park.
func (l *Loop) Running() *Task {
	if w := l.in(); w != nil {
		return w.Running()
	}
	return nil
}

// Loop returns the task's loop, or nil for nil.
func (t *Task) Loop() *Loop {
	if t == nil {
		return nil
	}
	return t.loop
}

// Parks tells whether the task has to Park instead of blocking. Only the task may ask.
func (t *Task) Parks() bool { return t != nil && (!t.away || t.loop.world != nil) }

// Doing says what the task does, for the log of long rounds.
func (t *Task) Doing(what string) { t.doing = what }

type taskKey struct{}

// NewContext returns a context that carries the task. Whoever has to wait under it finds the
// task by FromContext.
func NewContext(ctx context.Context, t *Task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// FromContext returns the task that the context carries, or nil. Only code that the task itself
// runs may use it.
func FromContext(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// link adds a task to those that have not ended. Loop.mu is held.
func (l *Loop) link(t *Task) {
	if t.after = l.tasks; t.after != nil {
		t.after.before = t
	}
	l.tasks = t
}

// unlink removes a task that has ended. The loop may wait for the last one.
func (l *Loop) unlink(t *Task) {
	l.enqueue(func(*queue) {
		if t.before != nil {
			t.before.after = t.after
		} else {
			l.tasks = t.after
		}
		if t.after != nil {
			t.after.before = t.before
		}
		t.before, t.after = nil, nil
	})
}
