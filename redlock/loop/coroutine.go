package loop

import (
	"iter"
	"slices"
)

// mostSpare is the number of coroutines that are kept for the next turns. Those that nobody needs
// for a while end, too.
const mostSpare = 512

// A coroutine has the stack on which tasks run their turns, one after another. The loop resumes
// it, or the goroutine of a task that left.
type coroutine struct {
	loop   *Loop
	task   *Task
	over   bool   // the turn has ended
	rests  bool   // what it returned
	dead   bool   // nothing can run on it any more
	leaver func() // runAway, made once because each Leave needs it
	again  func() // has the task go on after a Yield; made once, too
	keep   func() // keepCoroutine; made once, too

	resume func() (struct{}, bool) // runs it until it yields
	stop   func()
	yield  func(struct{}) bool
}

// newCoroutine must not be called under a locked thread (doc.go).
func (l *Loop) newCoroutine() *coroutine {
	c := &coroutine{loop: l}
	c.leaver, c.again, c.keep = c.runAway, func() { c.task.enqueue() }, func() { l.keepCoroutine(c) }
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() { c.dead = true }()
		c.yield = yield
		for more := true; more; more = yield(struct{}{}) {
			c.runTurn()
		}
	})
	return c
}

func (c *coroutine) runTurn() {
	c.over, c.rests = false, false
	defer func() { c.over = true }()
	defer c.loop.contain("a task")
	c.task.state.Store(taskRunning)
	c.rests = c.task.turn(c.task)
}

// resume runs a task on the loop until it parks, leaves, rests or ends.
func (l *Loop) resume(t *Task) {
	if t.on == nil {
		t.on = l.takeCoroutine()
		t.on.task = t
	}
	defer l.resumed(t.on) // also after a runtime.Goexit
	t.on.resume()
}

func (l *Loop) resumed(c *coroutine) {
	t := c.task
	l.watch.ran(t)
	switch {
	case c.over:
		l.keepCoroutine(c)
		t.endTurn(c.rests)
	case t.away && l.world != nil:
		l.world.Left(t)
	case t.away:
		l.helpers.Add(1)
		go c.leaver()
	}
}

// runAway runs a task that left until it comes back, rests or ends.
func (c *coroutine) runAway() {
	defer c.loop.helpers.Done()
	defer func() { // also after a runtime.Goexit
		if !c.over {
			c.task.enqueue()
			return
		}
		t, rests := c.task, c.rests
		c.loop.Do(c.keep) // the loop does not end before the task has
		t.endTurn(rests)
	}()
	c.resume()
}

// endTurn ends the task, or has it rest.
func (t *Task) endTurn(rests bool) {
	t.on, t.away = nil, false
	switch {
	case !rests:
		t.loop.unlink(t)
	case !t.state.CompareAndSwap(taskRunning, taskParked): // it was unparked meanwhile
		t.enqueue()
	}
}

func (l *Loop) takeCoroutine() *coroutine {
	if last := len(l.spare) - 1; last >= 0 {
		c := l.spare[last]
		l.spare = l.spare[:last]
		l.leastSpare = min(l.leastSpare, last)
		return c
	}
	return l.newCoroutine()
}

// keepCoroutine keeps a coroutine whose turn has ended for another, or ends it.
func (l *Loop) keepCoroutine(c *coroutine) {
	c.task = nil
	if c.dead || len(l.spare) == mostSpare {
		c.stop()
		return
	}
	l.spare = append(l.spare, c)
}

// endUnused ends the coroutines that nobody has needed since its last call: the first ones, for
// the last are taken first.
func (l *Loop) endUnused() {
	unused := l.spare[:l.leastSpare]
	for _, c := range unused {
		c.stop()
	}
	l.spare = slices.Delete(l.spare, 0, len(unused))
	l.leastSpare = len(l.spare)
}
