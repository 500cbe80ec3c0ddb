package redlock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
)

// Only one large question is with the masters. Who leaves while it waits is not served.
func TestTimelineLargeQuestionsTakeTurns(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		large := strings.Repeat("x", ballot.Small)
		began := time.Now()
		acquire := func(ctx context.Context, name string) (wait func() Outcome) {
			return begin(w, func() Outcome {
				return w.locker.Acquire(ctx, AcquireRequest{Key: []byte(name), Value: []byte(large), TTL: 10 * second})
			})
		}
		var results []func() Outcome
		for i := range 3 {
			results = append(results, acquire(t.Context(), fmt.Sprint("lock:large:", i)))
		}
		w.Settle()
		ctx, leave := context.WithCancel(t.Context())
		left := acquire(ctx, "lock:left")
		w.Settle()
		leave()
		if o := left(); o.Verdict == Won || time.Since(began) != 0 {
			t.Errorf("who left hears %v after %v", o.Verdict, time.Since(began))
		}
		if o := w.acquireKey("lock:small", tokenA); o.Verdict != Won || time.Since(began) > 10*time.Millisecond {
			t.Errorf("a small one comes to %v after %v", o.Verdict, time.Since(began))
		}
		for _, wait := range results {
			if o := wait(); o.Verdict != Won {
				t.Errorf("%+v", o)
			}
		}
		moments := map[time.Time]bool{}
		for _, x := range w.executions() {
			if string(x.Args[0]) == "SET" && string(x.Args[1]) == "lock:left" {
				t.Error("a master got the question of who left")
			}
			if string(x.Args[0]) == "SET" && strings.HasPrefix(string(x.Args[1]), "lock:large:") {
				moments[x.At] = true
			}
		}
		if len(moments) != 3 {
			t.Errorf("three large questions were asked at %d moments", len(moments))
		}
	})
}
