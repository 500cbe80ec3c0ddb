package loop

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync"
)

// These bound a round, so that nobody waits long for the next one. Commands are also sent only at
// the end of a round, so during a long one the masters and the upstream have nothing to do.
const (
	readSize   = 32 << 10 // bytes read from a socket
	mostEvents = 256      // sockets that become ready
	mostFirst  = 64       // reads from sockets with ReadFirst
	mostReads  = 32       // reads from sockets that bring little
	mostLater  = 32       // reads from sockets that bring much
	fewLater   = 8        // the same, while sockets that bring little are ready
	mostLast   = 8        // reads from sockets that end
	mostTurns  = 64       // functions and turns of tasks
	fewTurns   = 16       // turns of tasks that give way, between two looks whether somebody waits
	mostWrites = 1024     // sockets written to
	calmRounds = 256      // rounds without a socket that brings little before mostLater applies: some 50 ms
)

// A Loop reads and writes its sockets and runs its tasks. Any goroutine may call its methods.
type Loop struct {
	log   *slog.Logger
	poll  poller
	world World // nil: it runs on its own goroutine

	mu       sync.Mutex
	asleep   bool // it waits for the kernel, so whoever queues something wakes it
	stopping bool // Run's context has ended
	ended    bool // nothing is queued any more
	queued   queue
	tasks    *Task // all that have not ended

	// Only the loop uses these.
	connections []*Socket // by descriptor
	pumps       map[*Socket]struct{}
	told        func(fd int, readable, writable, ending bool) // event, as one value
	leaving     int                                           // sockets that are closed and still send
	first       line                                          // with bytes to read, and ReadFirst
	ready       line                                          // with bytes to read, and bringing little
	later       line                                          // with bytes to read, and bringing much
	last        line                                          // with an end or an error, as the kernel says
	calm        int                                           // rounds since ready was not empty, at most calmRounds
	funcs       batch[func()]
	turns       batch[*Task]
	turnsLater  batch[*Task] // of tasks that give way
	ends        batch[func()]
	writing     batch[*Socket]
	spare       []*coroutine
	leastSpare  int // there were never fewer since endUnused
	buf         [readSize]byte
	watch       watch

	helpers sync.WaitGroup // goroutines of tasks that left, of pumps, and of logging
	buffers sync.Pool      // of *buffer
}

// New makes a loop. The caller must call Run. It fails only if there are no descriptors left.
func New(log *slog.Logger) (*Loop, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	return newLoop(log, poll), nil
}

func newLoop(log *slog.Logger, poll poller) *Loop {
	l := &Loop{log: log, poll: poll, pumps: map[*Socket]struct{}{}}
	l.told = l.event
	return l
}

// Start makes a loop that runs until end is called. end waits for it. The error is New's.
func Start(log *slog.Logger) (l *Loop, end func(), err error) {
	if l, err = New(log); err != nil {
		return nil, func() {}, err
	}
	return l, l.start(), nil
}

func (l *Loop) start() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// Do has f called on the loop, in the order of the calls of Do. It returns false if the loop has
// ended, and then f is not called.
func (l *Loop) Do(f func()) bool {
	return l.enqueue(func(q *queue) { q.funcs = append(q.funcs, f) })
}

// AtEnd has f called on the loop at the end of the round: after the tasks have run, before
// sockets are written. It returns false if the loop has ended.
func (l *Loop) AtEnd(f func()) bool {
	return l.enqueue(func(q *queue) { q.ends = append(q.ends, f) })
}

// enqueue changes the queue, and wakes the loop if it waits.
func (l *Loop) enqueue(add func(*queue)) bool {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	add(&l.queued)
	wake := l.asleep
	l.asleep = false
	l.mu.Unlock()
	if wake {
		l.poll.wake()
	}
	return true
}

// Run runs the loop until ctx has ended and all tasks have, and then closes all sockets. It is
// called once.
func (l *Loop) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, l.stop)
	defer stop()
	watched := make(chan struct{})
	done := make(chan struct{})
	go l.runRounds(done) // no caller can have locked its thread
	go func() {
		defer close(watched)
		l.watchOver(done)
	}()
	<-done
	<-watched
	l.helpers.Wait()
	l.poll.close()
}

// runRounds closes done when the loop has ended. Whatever calls runtime.Goexit on the loop ends
// this goroutine, and another one goes on.
func (l *Loop) runRounds(done chan<- struct{}) {
	over := false
	defer func() {
		if over {
			close(done)
			return
		}
		l.helpers.Go(func() { l.log.Error("runtime.Goexit was called on the event loop (please report)") })
		go l.runRounds(done)
	}()
	for !l.isOver() {
		l.round()
	}
	l.closeAll()
	over = true
}

// stop has every task look at its context.
func (l *Loop) stop() {
	l.Do(func() {
		l.mu.Lock()
		l.stopping = true
		var all []*Task
		for t := l.tasks; t != nil; t = t.after {
			all = append(all, t)
		}
		l.mu.Unlock()
		for _, t := range all {
			t.Unpark()
		}
	})
}

// isOver decides whether this was the last round.
func (l *Loop) isOver() bool {
	if l.hasWork() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = l.stopping && l.tasks == nil && l.leaving == 0 && l.queued.isEmpty()
	return l.ended
}

func (l *Loop) closeAll() {
	for _, s := range l.connections {
		if s != nil {
			l.finish(s, net.ErrClosed)
		}
	}
	for s := range l.pumps {
		l.finish(s, net.ErrClosed)
	}
	l.leastSpare = len(l.spare)
	l.endUnused()
}

func (l *Loop) round() {
	l.await()
	l.step()
}

// step is a round without news of the kernel.
func (l *Loop) step() {
	l.watch.begin()
	l.runLater()
	l.readAll()
	l.runAll()
	l.writeAll()
	l.watch.end()
}

// await takes what the kernel has. It waits only if nothing is left to do.
func (l *Loop) await() {
	if l.poll.poll(false, l.told) > 0 || l.hasWork() {
		return
	}
	runtime.Gosched() // a goroutine that this one made ready would have to wait for the system call
	if l.fallAsleep() {
		l.poll.poll(true, l.told)
		l.mu.Lock()
		l.asleep = false
		l.mu.Unlock()
	}
}

// hasWork tells whether the rounds before left something.
func (l *Loop) hasWork() bool {
	return !l.first.isEmpty() || !l.ready.isEmpty() || !l.later.isEmpty() || !l.last.isEmpty() ||
		!l.funcs.isEmpty() || !l.turns.isEmpty() || !l.turnsLater.isEmpty() || !l.ends.isEmpty() || !l.writing.isEmpty()
}

// fallAsleep returns false if something is queued.
func (l *Loop) fallAsleep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asleep = l.queued.isEmpty()
	return l.asleep
}

// readAll reads once from each socket that is ready, within the bounds of a round.
func (l *Loop) readAll() {
	l.calm = min(l.calm+1, calmRounds)
	if !l.ready.isEmpty() {
		l.calm = 0
	}
	l.readSome(&l.first, mostFirst)
	l.readSome(&l.ready, mostReads)
	l.readSome(&l.later, laterReads(l.calm))
	l.readSome(&l.last, mostLast)
}

// laterReads is the number of sockets that bring much from which a round reads. Many cost less
// processor time, but others would wait for them.
func laterReads(calm int) int {
	if calm < calmRounds {
		return fewLater
	}
	return mostLater
}

func (l *Loop) readSome(from *line, most int) {
	from.batch.refill(&from.queued)
	for range most {
		s, ok := from.batch.pop()
		if !ok {
			return
		}
		l.read(s)
	}
}

// runAll calls the functions and resumes the tasks that are queued, also those that these queue.
func (l *Loop) runAll() {
	for n := 0; n < mostTurns; {
		l.mu.Lock()
		l.funcs.refill(&l.queued.funcs)
		l.turns.refill(&l.queued.tasks)
		l.mu.Unlock()
		if l.funcs.isEmpty() && l.turns.isEmpty() {
			return
		}
		for f, ok := l.funcs.pop(); ok; f, ok = l.funcs.pop() {
			l.call(f)
			n++
		}
		for n < mostTurns {
			t, ok := l.turns.pop()
			if !ok {
				break
			}
			l.resume(t)
			n++
		}
	}
}

// runLater resumes tasks that give way, few of them if a socket that brings little is ready. It comes before
// the reading, so what was asked of the others leaves without waiting for it.
func (l *Loop) runLater() {
	l.mu.Lock()
	l.turnsLater.refill(&l.queued.later)
	l.mu.Unlock()
	for n := 1; n <= mostTurns; n++ {
		t, ok := l.turnsLater.pop()
		if !ok {
			return
		}
		l.resume(t)
		if n%fewTurns == 0 {
			if l.poll.poll(false, l.told); !l.ready.isEmpty() {
				return
			}
		}
	}
}

// writeAll completes the batches of the round and does what was asked of sockets.
func (l *Loop) writeAll() {
	l.mu.Lock()
	l.ends.refill(&l.queued.ends)
	l.mu.Unlock()
	for f, ok := l.ends.pop(); ok; f, ok = l.ends.pop() {
		l.call(f)
	}
	l.mu.Lock()
	l.writing.refill(&l.queued.sockets)
	l.mu.Unlock()
	for range mostWrites {
		s, ok := l.writing.pop()
		if !ok {
			return
		}
		l.attend(s)
	}
}

// call calls f and contains its panic.
func (l *Loop) call(f func()) {
	defer l.contain("a function")
	f()
	l.watch.ran(f)
}
