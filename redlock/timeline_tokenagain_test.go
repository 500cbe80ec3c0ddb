package redlock

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
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
			m.store(0, []byte(key), entry{isList: true})
		}
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != Lost || o.Err != wrongType {
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
			m.watch = func(x execution) {
				if strings.Contains(string(bytes.Join(x.args, nil)), tokenA) { // the others are always a thousand tokens ahead
					text, last := marker.CutToken(m.value(marker.Key))
					m.put(marker.Key, fmt.Sprintf("%s token=%d", text, last+1000), 0)
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
			if m.value(marker.Key) != "" {
				t.Fatal("it has a marker")
			}
		}
		w.mustToken(w.locker, w.mustToken(w.locker, 0))
	})
}
