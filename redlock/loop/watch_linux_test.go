package loop

import (
	"strings"
	"testing"
	"time"
)

// blockTheLoop blocks it for longer than a busy machine delays other rounds. Only the longest is logged.
func blockTheLoop() { time.Sleep(50 * longRound) }

// The log names what made a round long.
func TestLongRoundsAreLogged(t *testing.T) {
	for want, block := range map[string]func(l *running){
		"blockTheLoop": func(l *running) { l.Do(blockTheLoop) },
		"task GETEX":   func(l *running) { l.Go(func(task *Task) { task.Doing("GETEX"); blockTheLoop() }) },
		"*loop.recorder": func(l *running) {
			r := newRecorder()
			r.received = func([]byte) { blockTheLoop() }
			_, theirs := l.adopt(t, "tcp", r)
			_, _ = theirs.Write([]byte("x"))
			r.until(t, "a byte", func() bool { return r.got.Len() == 1 })
		},
	} {
		l := start(t)
		block(l)
		l.flush(t)
		l.stop()
		if log := l.log.String(); !strings.Contains(log, "took long") || !strings.Contains(log, want) {
			t.Errorf("the log does not name %s: %s", want, log)
		}
	}
}
