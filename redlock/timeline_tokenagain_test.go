package redlock

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/toymaster"
)

// No vote counts for a moment while the masters change. Then the token is asked for again.
func TestTimelineATokenThatWasOvertakenIsAskedForAgain(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.another(timelineConfig())
		w.settle()
		w.mustAcquire(tokenA, 10*second)
		last := w.mustToken(w.locker, 0)
		w.overtake()
		w.mustToken(w.locker, last)
	})
}

func TestTimelineATokenNeedsALockThatIsAString(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for _, m := range w.masters {
			m.Store(0, []byte(key), toymaster.Entry{IsList: true})
		}
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != Lost || o.Err != toymaster.WrongType {
			t.Errorf("%+v", o)
		}
	})
}

// A client that others always outrun is told so after a while.
func TestTimelineATokenIsNotTriedForEver(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(w.locker, 0)
		raiseTokens(w, 1000)
		for _, m := range w.masters {
			m.Watch = func(x toymaster.Execution) {
				if strings.Contains(string(bytes.Join(x.Args, nil)), tokenA) { // the others are always a thousand tokens ahead
					text, last := marker.CutToken(m.Value(marker.Key))
					m.Put(marker.Key, fmt.Sprintf("%s token=%d", text, last+1000), 0)
				}
			}
		}
		began := time.Now()
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != NoQuorum || !o.Outrun || time.Since(began) > 3*second {
			t.Errorf("after %v: %+v", time.Since(began), o)
		}
	})
}

// An embedded master has no marker, and gives tokens all the same.
func TestTimelineEmbeddedMastersGiveTokens(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *timeline) {
		w.embedded = true
		w.locker, w.links = w.connect("p", timelineConfig())
		w.mustAcquire(tokenA, 20*second)
		for _, m := range w.masters {
			if m.Value(marker.Key) != "" {
				t.Fatal("it has a marker")
			}
		}
		w.mustToken(w.locker, w.mustToken(w.locker, 0))
	})
}
