package redlock

import (
	"context"
	"slices"
	"testing"
	"time"
)

// Extensions by value, and what a run tells about the keys that it wrote.

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
