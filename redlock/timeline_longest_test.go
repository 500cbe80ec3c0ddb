package redlock

import (
	"testing"
	"time"
)

// What masters have on record of the longest TTL, which sets how long a
// quarantine is.

// A ballot that raises the longest TTL is still under way when a master forgets
// that has voted in it: then the others do not have it on record yet.
func TestTimelineTheLongestTTLIsNotLearnedTooEarly(t *testing.T) {
	cfg := timelineConfig()
	cfg.MasterTimeout = 4 * second
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		slow, links := w.connect("slow", cfg)
		w.others = append(w.others, slow)
		w.settle()
		for i, k := range links {
			switch {
			case i < 2:
				k.setDelay(1900*time.Millisecond, 0)
			case i < 4:
				k.silence()
			}
		}
		verdict := make(chan Verdict)
		go func() {
			r := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: 2 * time.Minute}
			verdict <- slow.Acquire(t.Context(), r).Verdict
		}()
		time.Sleep(2 * time.Millisecond)
		w.restart(false, 4)
		if v := <-verdict; v != Won {
			t.Fatalf("the first client: %v", v)
		}
		for range 100 {
			time.Sleep(second)
			if o, _ := w.acquire(tokenB, second); o.Verdict == Won {
				t.Fatal("a second client has the lock")
			}
		}
	})
}
