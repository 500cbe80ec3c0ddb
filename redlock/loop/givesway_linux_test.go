package loop

import "testing"

// Tasks that give way run, too, while others are always ready.
func TestTasksThatGiveWayAreNotStarved(t *testing.T) {
	l := start(t)
	goOn := l.hold(t)
	over, all := false, make(chan struct{})
	ended := 0
	for range 2 * mostTurns {
		l.Go(func(task *Task) {
			for !over {
				task.Unpark()
				task.Park()
				task.Yield()
			}
			if ended++; ended == 2*mostTurns {
				close(all)
			}
		})
	}
	l.GoLater(func(*Task) (rests bool) { over = true; return false })
	goOn()
	waitFor(t, all, "the task that gives way")
}
