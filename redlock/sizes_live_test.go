package redlock

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
)

// What is large waits for its turn, and what is larger than an answer may be is refused by name. Such a
// key can still be deleted.
func TestSizesOfLocks(t *testing.T) {
	s := startLiveSet(t, 3)
	each := func(args ...string) {
		for _, m := range s.masters {
			m.must(args...)
		}
	}
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	for name, row := range map[string]struct {
		fill  func()
		reads bool // the key can be read
	}{
		"a small string":   {func() { each("SET", key, "token") }, true},
		"an empty string":  {func() { each("SET", key, "") }, true},
		"a cut string":     {func() { each("SET", key, strings.Repeat("x", ballot.Small+1)) }, true},
		"a large string":   {func() { each("SET", key, strings.Repeat("x", 1_000_000)) }, true},
		"too large string": {func() { each("SETRANGE", key, "5000000", "x") }, false},
		"too large hash": {func() {
			for i := range 5 {
				each("HSET", key, fmt.Sprint(i), string(noise))
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			row.fill()
			isHash := strings.HasSuffix(name, "hash")
			grow := []string{"APPEND", key, "more"}
			if isHash {
				grow = []string{"HSET", key, "more", "1"}
			} else {
				o := s.Get(t.Context(), 0, []byte(key))
				want := string(s.masters[0].must("GET", key))
				if got := fmt.Sprintf("$%d\r\n%s\r\n", len(o.Value), o.Value); row.reads && (o.Verdict != Won || got != want) {
					t.Errorf("it is read as %.80q (%v)", got, o.Verdict)
				}
				if text := o.NoQuorumError(); !row.reads && (o.Verdict != NoQuorum || !strings.Contains(text, "limits.lock_reply")) {
					t.Errorf("reading it comes to %v: %s", o.Verdict, text)
				}
			}
			before := s.masters[0].dump(key)
			o := s.run([]string{key}, grow...)
			refused := strings.HasPrefix(string(o.Reply), "-ERR ") && strings.Contains(string(o.Reply), "limits.lock_reply")
			if changed := string(before) != string(s.masters[0].dump(key)); o.Verdict != Won || refused == row.reads || refused && changed {
				t.Errorf("%q comes to %v %q, changed: %v", grow, o.Verdict, o.Reply, changed)
			}
			w, o := s.Watch(t.Context(), 0, [][]byte{[]byte(key)})
			if (w != nil) != row.reads || !row.reads && !strings.Contains(o.NoQuorumError(), "limits.lock_reply") {
				t.Errorf("WATCH comes to %+v", o)
			}
			if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key), Get: true}); o.Verdict != Won && !isHash && row.reads {
				t.Errorf("GETDEL comes to %+v", o)
			}
			row.fill()
			if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
				t.Errorf("DEL comes to %+v", o)
			}
			s.eventuallyGone(key)
		})
	}
}

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
