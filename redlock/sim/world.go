// Package sim is a World for loops (redlock/loop), for tests: everything in one thread and in virtual time.
package sim

import (
	"container/heap"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock/loop"
)

// real is how to wait outside a World.
var real *loop.Loop

// A World runs loops, and the goroutines around them, in one thread and in virtual time. Whatever could
// happen at one moment happens one after the other, in an order that the seed decides. So the same
// seed gives the same run, on any machine. A World is for tests. It lives in a bubble of testing/synctest
// and moves the bubble's clock. All that waits there waits by Wait, Join and Park. Nothing else may
// run in the bubble that the World's runs depend on.
type World struct {
	seed    uint64
	events  events
	waiting []*waiting
	current *loop.Task   // runs away from its loop; nil: none, or the loops
	loops   []*loop.Loop // the first is that of what Go runs
	joined  sync.WaitGroup
	spawned map[*sync.WaitGroup]int // that have not ended
	settle  []*loop.Task            // go on when nothing more happens at this moment

	drawnAt int64 // when Draw was last called...
	drawn   uint64
	number  uint64
}

// An Event is what happens at one moment.
type Event struct {
	at     int64
	draw   uint64 // the order of those of one moment
	number uint64
	do     func() // nil: it was cancelled
	quiet  bool
}

// Cancel keeps an event from happening.
func (e *Event) Cancel() { e.do = nil }

// Quiet says that an event ends no Wait by itself. It saves time.
func (e *Event) Quiet() *Event {
	e.quiet = true
	return e
}

// events is a heap, the next one first.
type events []*Event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	a, b := e[i], e[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.draw != b.draw {
		return a.draw < b.draw
	}
	return a.number < b.number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(*Event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}

// A waiting is what goes on when one of some channels is ready, or when something has ended.
type waiting struct {
	on    []<-chan struct{}
	ended func() bool // nil: the channels tell
	then  func(ready int)
	late  *Event // nil: it waits for ever
}

// NewWorld makes a World in which nothing happens yet.
func NewWorld(seed uint64) *World {
	w := &World{seed: seed, spawned: map[*sync.WaitGroup]int{}}
	w.Loop(slog.New(slog.DiscardHandler))
	return w
}

// Loop makes a loop of the World. Its connections must be Simulated. It ends with Run.
func (w *World) Loop(log *slog.Logger) *loop.Loop {
	var l *loop.Loop
	due := false // the next round is among the events
	var wake func()
	wake = func() {
		if due {
			return
		}
		due = true
		w.After(0, func() {
			due = false
			if l.Step() {
				wake()
			}
		})
	}
	l = loop.NewIn(w, wake, log)
	w.loops = append(w.loops, l)
	return l
}

// Run calls f, and all else that happens, until f has returned. What f has not ended by then is a defect.
//
// f may end by runtime.Goexit, as it does by t.Fatal. Then Run ends so, too.
func (w *World) Run(f func()) {
	over := false
	w.Go(func() {
		defer func() { over = true }()
		f()
	})
	defer w.runUntil(&over) // what f's Goexit has interrupted
	w.runUntil(&over)
}

func (w *World) runUntil(over *bool) {
	for !*over || len(w.spawned) > 0 {
		if w.resumeSettled() {
			continue
		}
		if len(w.events) == 0 {
			panic(fmt.Sprintf("nothing can happen any more, and %d still wait", len(w.waiting)))
		}
		e := heap.Pop(&w.events).(*Event)
		if d := e.at - time.Now().UnixNano(); d > 0 {
			time.Sleep(time.Duration(d))
		}
		if e.do(); !e.quiet {
			w.look()
		}
	}
}

// Go runs f with a stack of its own. f may Wait.
func (w *World) Go(f func()) { w.Spawn(w.loops[0], &w.joined, f) }

// After has f called after d. f must not wait.
func (w *World) After(d time.Duration, f func()) *Event {
	w.number++
	e := &Event{at: time.Now().UnixNano() + int64(max(d, 0)), draw: w.Draw(), number: w.number, do: f}
	heap.Push(&w.events, e)
	return e
}

// AfterFunc is Loop.After.
func (w *World) AfterFunc(d time.Duration, f func()) { w.After(d, f) }

// Draw returns a random number. It depends on the moment and on what was drawn at this moment before,
// so what has changed earlier in a run changes nothing later.
func (w *World) Draw() uint64 {
	if now := time.Now().UnixNano(); now != w.drawnAt {
		w.drawnAt, w.drawn = now, 0
	}
	w.drawn++
	return mix(mix(w.seed^uint64(w.drawnAt)) + w.drawn)
}

// mix makes a number look random (splitmix64).
func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// Hash mixes numbers into one number that looks random (splitmix64).
func Hash(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h += n + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// Hash is Loop.Hash.
func (w *World) Hash(text string) uint64 {
	h := uint64(len(text))
	for i := range len(text) {
		h = mix(h ^ uint64(text[i]))
	}
	return h
}

// Wait is Loop.Wait.
func (w *World) Wait(d time.Duration, on ...<-chan struct{}) (ready int) {
	if w == nil {
		return real.Wait(d, on...)
	}
	if ready = real.Wait(0, on...); ready != loop.Late || d <= 0 {
		return ready
	}
	w.wait(&waiting{on: slices.Clone(on)}, d, &ready)
	return ready
}

func (w *World) wait(x *waiting, d time.Duration, ready *int) {
	t := w.current
	if t == nil {
		panic("what runs on a loop waits")
	}
	x.then = func(i int) {
		*ready = i
		w.Left(t)
	}
	if d != loop.Forever {
		x.late = w.After(d, func() {
			w.drop(x)
			x.then(loop.Late)
		})
	}
	w.waiting = append(w.waiting, x)
	t.Suspend()
}

func (w *World) drop(x *waiting) bool {
	i := slices.Index(w.waiting, x)
	if i < 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	if x.late != nil {
		x.late.Cancel()
	}
	return true
}

// look ends the waits that are over.
func (w *World) look() {
	for i := 0; i < len(w.waiting); {
		x := w.waiting[i]
		ready := loop.Late
		if x.ended == nil {
			ready = real.Wait(0, x.on...)
		} else if x.ended() {
			ready = 0
		}
		if ready == loop.Late {
			i++
			continue
		}
		w.drop(x)
		x.then(ready)
	}
}

// Left has a task run that is away from its loop.
func (w *World) Left(t *loop.Task) {
	w.After(0, func() {
		w.current = t
		defer func() { w.current = nil }()
		t.Continue()
	})
}

// Settle lets all happen that happens at this moment.
func (w *World) Settle() {
	w.settle = append(w.settle, w.current)
	w.current.Suspend()
}

// resumeSettled has the next one go on that Settle has let wait for the end of this moment, if it has come.
func (w *World) resumeSettled() bool {
	for len(w.events) > 0 && w.events[0].do == nil {
		heap.Pop(&w.events)
	}
	if len(w.settle) == 0 || len(w.events) > 0 && w.events[0].at <= time.Now().UnixNano() {
		return false
	}
	w.Left(w.settle[0])
	w.settle = w.settle[1:]
	return true
}

// Running is the task that runs away from its loop, or nil.
func (w *World) Running() *loop.Task { return w.current }

// Spawn is Loop.Spawn.
func (w *World) Spawn(l *loop.Loop, of *sync.WaitGroup, f func()) {
	w.spawned[of]++
	w.Left(l.Away(func() {
		defer func() {
			if w.spawned[of]--; w.spawned[of] == 0 {
				delete(w.spawned, of)
			}
		}()
		f()
	}))
}

// Join is Loop.Join.
func (w *World) Join(of *sync.WaitGroup) {
	ended := func() bool { return w.spawned[of] == 0 }
	if ready := 0; !ended() {
		w.wait(&waiting{ended: ended}, loop.Forever, &ready)
	}
}

// OnEnd is Loop.OnEnd.
func (w *World) OnEnd(ctx context.Context, f func()) (stop func() bool) {
	x := &waiting{on: []<-chan struct{}{ctx.Done()}, then: func(int) { w.After(0, f) }}
	if at, limited := ctx.Deadline(); limited {
		x.late = w.After(time.Until(at)+1, func() {}) // by then the context's own timer has ended it
	}
	w.waiting = append(w.waiting, x)
	return func() bool { return w.drop(x) }
}

// Close lets go of the stacks. Run must have returned.
func (w *World) Close() {
	for _, l := range w.loops {
		for l.Step() {
		}
		l.Finish()
	}
}

// Panicked ends the program: here a panic is a defect of what is tested.
func (w *World) Panicked(reason any) {
	fmt.Fprintf(os.Stderr, "%s\n", debug.Stack())
	panic(reason)
}
