package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/stream"
)

// A script that reaches too far is refused, whatever command runs it.
func TestScriptsThatReachTooFarAreNotRun(t *testing.T) {
	const text = "return redis.call('del', 'redlock-proxy:master')"
	eval := bytesOf([]string{"EVAL", text, "1", key})
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for name, r := range map[string]RunRequest{
			"EVAL":        {Args: eval},
			"EVALSHA":     {Args: bytesOf([]string{"EVALSHA", stream.NewLoadable([]byte(text)).SHA, "1", key}), Scripts: bytesOf([]string{text})},
			"transaction": {Transaction: [][][]byte{bytesOf([]string{"GET", key}), eval}},
		} {
			r.Keys = bytesOf([]string{key})
			if o := w.locker.Run(t.Context(), r); o.Verdict != Lost || string(o.Reply) != "-ERR a script on lock keys must not name the proxy's own keys on its lock masters\r\n" {
				t.Errorf("%s: %v %q", name, o.Verdict, o.Reply)
			}
		}
		w.wantHeard(0, "")
	})
}

// A lock that ends before it could be valid is refused at once, and no master is
// asked for it.
func TestTimelineATTLTooShortToBeValidIsRefusedAtOnce(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3, Delay: 200 * time.Millisecond}
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for _, ttl := range []time.Duration{time.Millisecond, 2 * time.Millisecond} {
			o, took := w.acquire(tokenA, ttl)
			w.wantVerdict(o, took, Lost, 0)
		}
		w.wantHeard(0, "")
		if o, _ := w.acquire(tokenA, 10*time.Millisecond); o.Verdict != Won {
			t.Errorf("10 ms: %v", o.Verdict)
		}
		o := w.locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenB), TTL: 2 * time.Millisecond, Get: true})
		if o.Verdict != Lost || string(o.Value) != tokenA {
			t.Errorf("the holder is %v %q", o.Verdict, o.Value)
		}
	})
}
