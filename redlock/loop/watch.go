package loop

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	longRound  = 10 * time.Millisecond // a round that takes longer delays every client
	stuckAfter = time.Second           // a round that takes longer may never end
	logEvery   = 10 * time.Second
)

// A watch takes the time of rounds, and of what ran in them. The loop writes it.
type watch struct {
	began   atomic.Int64 // of the round; 0: the loop waits
	last    int64        // when the last thing in it had run
	longest int64
	what    any    // ran longest: a func(), *Task or *Socket
	doing   string // what the task did
	report  atomic.Pointer[longReport]
	long    atomic.Int64 // rounds that were too long since the last log line
}

// A longReport is the longest round since the last log line.
type longReport struct {
	round, longest time.Duration
	what           string
}

func (w *watch) now() int64 { return int64(time.Since(processStart)) + 1 }

var processStart = time.Now()

// Now is a coarse time in ns, from any beginning: when the present round began. It costs no look at the clock. Any
// goroutine may call it.
func (l *Loop) Now() int64 {
	if began := l.watch.began.Load(); began != 0 {
		return began
	}
	return l.watch.now()
}

func (w *watch) begin() {
	now := w.now()
	w.began.Store(now)
	w.last, w.longest, w.what, w.doing = now, 0, nil, ""
}

// ran notes that something has run.
func (w *watch) ran(what any) {
	now := w.now()
	if took := now - w.last; took > w.longest {
		w.longest, w.what = took, what
		if t, isTask := what.(*Task); isTask {
			w.doing = t.doing // it may leave and do something else
		}
	}
	w.last = now
}

// end notes the end of a round. It logs nothing, because that can block.
func (w *watch) end() {
	took := time.Duration(w.now() - w.began.Swap(0))
	if took <= longRound {
		return
	}
	w.long.Add(1)
	if was := w.report.Load(); was == nil || was.round < took {
		w.report.Store(&longReport{round: took, longest: time.Duration(w.longest), what: w.name()})
	}
}

// watchOver logs long rounds until done is closed. It also has the loop let go of what it does not
// need any more.
func (l *Loop) watchOver(done <-chan struct{}) {
	ticker := time.NewTicker(stuckAfter)
	defer ticker.Stop()
	var logged time.Time
	endUnused := l.endUnused
	for {
		select {
		case <-done:
			l.logLongest()
			return
		case <-ticker.C:
		}
		l.Do(endUnused)
		if began := l.watch.began.Load(); began != 0 && l.watch.now()-began > int64(stuckAfter) {
			l.log.Error("the event loop is stuck, so no client is served (deploy/INCIDENTS.md#the-event-loop)", "for", time.Duration(l.watch.now()-began))
		}
		if time.Since(logged) > logEvery && l.logLongest() {
			logged = time.Now()
		}
	}
}

// logLongest logs the longest round since its last call, if one was too long.
func (l *Loop) logLongest() bool {
	r := l.watch.report.Swap(nil)
	if r == nil {
		return false
	}
	l.log.Warn("a round of the event loop took long and delayed all clients (deploy/INCIDENTS.md#the-event-loop)", "took", r.round,
		"rounds", l.watch.long.Swap(0), "longest_part", r.longest, "of", r.what)
	return true
}

// contain is deferred. It logs a panic without waiting for the log.
func (l *Loop) contain(where string) {
	if reason := recover(); reason != nil {
		if l.world != nil {
			l.world.Panicked(reason)
		}
		stack := string(debug.Stack())
		l.helpers.Go(func() {
			l.log.Error("panic on the event loop (please report)", "in", where, slog.Any("panic", reason), "stack", stack)
		})
	}
}

// name says what ran longest.
func (w *watch) name() string {
	switch what := w.what.(type) {
	case *Task:
		return "task " + w.doing
	case *Socket:
		return fmt.Sprintf("receiver %T", what.receiver)
	case func():
		return runtime.FuncForPC(reflect.ValueOf(what).Pointer()).Name()
	}
	return "reading and writing"
}
