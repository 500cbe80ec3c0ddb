package loop

import (
	"testing"
	"time"
)

// Now stands still during a round, and goes on with the next one.
func TestNowIsWhenTheRoundBegan(t *testing.T) {
	l := start(t)
	var first, later, next int64
	l.Do(func() {
		first = l.Now()
		time.Sleep(time.Millisecond)
		later = l.Now()
	})
	l.flush(t)
	l.Do(func() { next = l.Now() })
	l.flush(t)
	l.stop()
	if first != later || next < first+int64(time.Millisecond) {
		t.Errorf("%d and %d in one round, and %d in the next", first, later, next)
	}
}
