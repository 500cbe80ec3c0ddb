package loop

import (
	"slices"
	"testing"
)

// While many tasks that give way are queued, a client that sends little waits for few of them.
func TestALittleWaitsForFewTasksThatGiveWay(t *testing.T) {
	l := start(t)
	o := &readOrder{most: 1, done: make(chan struct{})}
	_, send := o.client(t, l, "little", func() {})
	send(1)
	waitFor(t, o.done, "the first byte")
	l.flush(t)

	goOn := l.hold(t)
	const crowd = 3 * fewTurns
	o.names, o.most, o.done = nil, crowd+1, make(chan struct{})
	for i := range crowd {
		l.GoLater(func(*Task) (rests bool) {
			if i == 0 {
				send(1)
			}
			if o.names = append(o.names, "task"); len(o.names) == o.most {
				close(o.done)
			}
			return false
		})
	}
	goOn()
	waitFor(t, o.done, "all to run")
	if at := slices.Index(o.names, "little"); at > fewTurns {
		t.Errorf("%d tasks that give way ran before it, and it waits for %d", at, fewTurns)
	}
}

// Tasks that give way run after the others, in their order.
func TestTasksOfGoLaterGiveWay(t *testing.T) {
	l := start(t)
	goOn := l.hold(t)
	var order []string
	done := make(chan struct{})
	for _, name := range []string{"a", "b", "c"} {
		l.GoLater(func(task *Task) (rests bool) {
			if order = append(order, name); name == "c" {
				close(done)
			}
			return false
		})
	}
	l.Go(func(*Task) { order = append(order, "other") })
	goOn()
	waitFor(t, done, "all to run")
	if want := []string{"other", "a", "b", "c"}; !slices.Equal(order, want) {
		t.Errorf("they ran in the order %v, want %v", order, want)
	}
}

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
