package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// queuedNow is an Observer that knows the last reported number of debts of each master.
type queuedNow struct {
	nobody
	now  map[string]int
	most int
}

func (q *queuedNow) Queued(master string, waiting int) {
	q.now[master] = waiting
	q.most = max(q.most, waiting)
}

func (q *queuedNow) of(master string) (now, most int) {
	return q.now[master], q.most
}

// A command that a master could not serve waits until the master has executed it. Debts of
// two databases are counted together.
func TestTimelineWhatWaitsForAMasterIsToldUntilItIsPaid(t *testing.T) {
	q := &queuedNow{now: map[string]int{}}
	cfg := timelineConfig()
	cfg.Observer = q
	onTimelineWith(t, cfg, allWell, func(t *testing.T, w *timeline) {
		release := func(db int) {
			w.locker.Release(t.Context(), ReleaseRequest{DB: db, Key: []byte(key)})
		}
		take := func(db int) {
			o := w.locker.Acquire(t.Context(), AcquireRequest{DB: db, Key: []byte(key), Value: []byte(tokenA), TTL: time.Minute})
			if o.Verdict != Won {
				t.Fatalf("database %d: %v", db, o.Verdict)
			}
		}
		take(0)
		take(1)
		w.sleep(second)
		w.play("ok ok ok ok refuse")
		release(0)
		release(1)
		w.sleep(roster.BeatLength)
		if now, most := q.of("m5"); now != 2 || most != 2 {
			t.Errorf("%d debts wait and %d did, want those of two databases", now, most)
		}
		w.play(allWell)
		w.sleep(second)
		if now, _ := q.of("m5"); now != 0 {
			t.Errorf("%d debts wait although all are paid", now)
		}
	})
}
