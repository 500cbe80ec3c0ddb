package ballot

import (
	"testing"
	"testing/synctest"
	"time"
)

// listed begins waits of these lengths.
func listed(d *deadlines, lengths ...time.Duration) []*wait {
	var waits []*wait
	for _, length := range lengths {
		w := &wait{over: make(chan ending, 2)}
		d.add(w, time.Now().Add(length), nil)
		waits = append(waits, w)
	}
	return waits
}

// Each wait gets overdue at its own deadline, also if a later ballot waits for less time.
func TestDeadlinesComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lengths := []time.Duration{50, 80, 20, 50, 10, 100}
		d := newDeadlines(nil)
		began := time.Now()
		for i, w := range listed(d, lengths...) {
			go func() {
				if why, took := <-w.over, time.Since(began); why != overdue || took != lengths[i] {
					t.Errorf("the wait of %v ended after %v: %v", lengths[i], took, why)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if d.ring.later != &d.ring || d.ring.earlier != &d.ring || !d.fires.IsZero() {
			t.Error("something is left")
		}
	})
}

// A wait that was removed is not told anything, whether its deadline came before or not.
func TestARemovedWaitIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeadlines(nil)
		waits := listed(d, 30, 10, 20)
		time.Sleep(15 * time.Nanosecond)
		for _, w := range waits {
			d.remove(w)
		}
		time.Sleep(time.Second)
		for i, w := range waits {
			if len(w.over) > 0 {
				t.Errorf("wait %d was told %v", i, <-w.over)
			}
		}
		began := time.Now()
		d.add(waits[0], began.Add(40), nil)
		if <-waits[0].over; time.Since(began) != 40 {
			t.Errorf("overdue after %v", time.Since(began))
		}
	})
}
