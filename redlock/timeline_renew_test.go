package redlock

import (
	"context"
	"slices"
	"testing"
	"time"
)

// Extensions by value, and what a run tells about the keys that it wrote.

func (w *timeline) renew(value string, ttl time.Duration) Outcome {
	return w.locker.Renew(context.Background(), RenewRequest{Key: []byte(key), Holder: []byte(value), TTL: ttl})
}

func TestTimelineARenewalNeedsAQuorumForTheHoldersValue(t *testing.T) {
	for _, row := range []struct {
		script, holds string
		verdict       Verdict
		still         int64
	}{
		{"ok ok ok ok ok", "A A A A A", Won, 0},
		{"ok ok ok ok ok", "A A A B -", Won, 0},
		{"ok ok ok ok ok", "B B B B B", Lost, 0},
		{"ok ok ok ok ok", "- - - - -", Lost, 0},
		{"ok ok ok ok ok", "A A - - -", Lost, 2},
		{"ok ok ok kill kill", "- - - A A", Lost, 0},
		{"ok ok ok kill kill", "A A A A A", Won, 0},
		{"ok ok ok kill kill", "A A - A A", NoQuorum, 0},
		{"ok ok refuse pause kill", "A A A A A", NoQuorum, 0},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Minute)
				// The last grants of a lost ballot may come after its verdict.
				if o := w.renew(tokenA, 90*second); o.Verdict != row.verdict || o.Number > row.still {
					t.Errorf("%v, %d still hold it, want %v, %d", o.Verdict, o.Number, row.verdict, row.still)
				}
			})
		})
	}
}

func TestTimelineARenewalChangesOnlyTheHoldersLock(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A B -", 10*second)
		began := time.Now()
		if o := w.renew(tokenA, 30*second); o.Verdict != Won || o.Since.Before(began) || o.Since.After(began.Add(time.Millisecond)) {
			t.Fatal(o.Verdict, o.Since.Sub(began))
		}
		w.elapse(999 * time.Millisecond)
		w.wantTTLs(29*second, 29*second, 29*second, 9*second, -2)
	})
}

func TestTimelineARenewalNeverShortensALock(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for _, ttl := range []time.Duration{time.Minute, 0} {
			w.put("A A A A A", ttl)
			if o := w.renew(tokenA, 30*second); o.Verdict != Won {
				t.Fatal(o.Verdict)
			}
			w.elapse(999 * time.Millisecond)
			if ttl -= second; ttl < 0 {
				ttl = -1
			}
			w.wantTTLs(ttl, ttl, ttl, ttl, ttl)
		}
	})
}

func TestTimelineARenewalNeedsValidity(t *testing.T) {
	onTimeline(t, "ok@1ms ok@1ms ok@40ms pause pause", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 10*time.Millisecond)
		if o := w.renew(tokenA, 41*time.Millisecond); o.Verdict != Lost {
			t.Error(o.Verdict)
		}
	})
}

// A master that missed a renewal keeps its copy until that expires. The holder has gone
// by then, or has renewed the lock again.
func TestTimelineARenewalIsNotRepeatedLater(t *testing.T) {
	onTimeline(t, "ok ok ok ok kill", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 10*second)
		if o := w.renew(tokenA, 60*second); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.masters[4].restart(true)
		w.elapse(4 * second)
		w.locker.Get(context.Background(), 0, []byte(key))
		w.elapse(0)
		if left := w.masters[4].ttl(key); left > 6*second {
			t.Errorf("where it was missed, the lock lives for %v", left)
		}
	})
}

func TestTimelineARunTellsWhatItDidToItsKeys(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		var kept []string // by the last run
		run := func(effects bool, args ...string) []Effect {
			r := RunRequest{Keys: [][]byte{[]byte(key)}, Effects: effects}
			for _, arg := range args {
				r.Args = append(r.Args, []byte(arg))
			}
			o := w.locker.Run(context.Background(), r)
			kept = nil
			for _, key := range o.Kept {
				kept = append(kept, string(key))
			}
			return o.Effects
		}
		take := []string{"EVAL", takeIfFree, "1", key, tokenA, "60000"}
		for _, step := range []struct {
			args   []string
			change Change
			value  string
			ttl    time.Duration
		}{
			{take, KeyCreated, tokenA, 60 * second},
			{[]string{"PEXPIRE", key, "90000"}, KeyProlonged, "", 90 * second},
			{[]string{"SET", key, tokenB, "PX", "30000"}, KeyReplaced, "", 30 * second},
			{[]string{"DEL", key}, KeyDeleted, "", 0},
		} {
			all := run(true, step.args...)
			if len(all) != 1 || all[0].Change != step.change || string(all[0].Value) != step.value || string(all[0].Key) != key ||
				all[0].TTL > step.ttl || all[0].TTL < step.ttl-10*time.Millisecond {
				t.Errorf("%q: %+v", step.args, all)
			}
		}
		if all := run(false, take...); all != nil {
			t.Errorf("unasked: %+v", all)
		}
		if all := run(true, take...); len(all) != 0 || !slices.Equal(kept, []string{key}) {
			t.Errorf("a refusal: %+v, kept %q", all, kept)
		}
		release := run(true, "EVAL", compareAndDelete, "1", key, tokenA)
		if !slices.ContainsFunc(release, func(e Effect) bool { return e.Change == KeyDeleted && string(e.Key) == key }) {
			t.Errorf("a recognised release: %+v", release)
		}
		if again := run(true, "EVAL", compareAndDelete, "1", key, tokenA); len(again) != 0 {
			t.Errorf("a release of nothing: %+v", again)
		}
	})
}

// A run that too few masters got may have been a release. What it deleted there shows that,
// and is put back.
func TestTimelineADeletionWithoutAQuorumIsTold(t *testing.T) {
	onTimeline(t, "ok ok kill kill kill", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		var told []string
		o := w.locker.Run(context.Background(), RunRequest{
			Keys: [][]byte{[]byte(key)}, Transaction: [][][]byte{bytesOf([]string{"DEL", key})},
			Deleted: func(key, value []byte) {
				told = append(told, string(key)+" "+string(value))
			},
		})
		w.elapse(0)
		if want := key + " " + tokenA; o.Verdict != NoQuorum || !slices.Equal(told, []string{want, want}) {
			t.Errorf("%v, told %q", o.Verdict, told)
		}
		w.wantValues("A A A A A")
	})
}
