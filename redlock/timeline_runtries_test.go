package redlock

import (
	"testing"
	"time"
)

// Which runs are tried again, and what happens to copies that differed before one.

// Votes of a script split while copies of an ended lock expire one after the other, so it is tried again.
func TestTimelineARunWhoseVotesAreSplitIsTriedAgain(t *testing.T) {
	for tries, want := range map[int]Verdict{0: NoQuorum, 5: Won} {
		cfg := timelineConfig()
		cfg.Retry = Retry{Count: tries, Delay: 0}
		onTimelineWith(t, cfg, "ok ok ok ok kill", func(t *testing.T, w *timeline) {
			w.put("X X - - -", 2*time.Millisecond)
			if o := w.eval(takeIfFree, tokenA, "10000"); o.Verdict != want {
				t.Errorf("with %d more tries: %v %q", tries, o.Verdict, o.Reply)
			}
			if n := w.countHeard(2, "take-if-free"); (n > 1) != (tries > 0) {
				t.Errorf("with %d more tries a master executed it %d times", tries, n)
			}
		})
	}
}

// A transaction behind its client's watches is tried once. Nobody knows what its client would send if it
// had seen the keys as they are now.
func TestTimelineATransactionBehindWatchesIsTriedOnce(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3, Delay: 0}
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		keys := bytesOf([]string{key})
		watch, o := w.locker.Watch(t.Context(), 0, keys)
		if o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.put("X X - - -", time.Hour)
		w.play("ok ok ok ok kill")
		set := [][][]byte{bytesOf([]string{"SET", key, tokenA})}
		if o := w.locker.Run(t.Context(), RunRequest{Keys: keys, Transaction: set, Watches: []*Watch{watch}}); o.Verdict != NoQuorum {
			t.Errorf("%v %q", o.Verdict, o.Reply)
		}
		if n := w.countHeard(2, "SET"); n != 1 {
			t.Errorf("a master executed it %d times", n)
		}
	})
}

// A master of the others had something else under the key before a run was won. Nobody holds that, so it goes.
func TestTimelineACopyThatDifferedBeforeAWonRunIsMended(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A B", 0)
		wantReply(t, w.eval(compareAndDelete+"\n--\\", tokenA), ":1\r\n") // it is examined
		w.elapse(0)
		w.wantValues("- - - - B")
		w.elapse(enough)
		w.wantValues("- - - - -")
	})
}

// Where the watched keys of a quorum have changed, the transaction comes to nothing, and what another master
// did is taken back.
func TestTimelineATransactionThatAQuorumAbortedIsTakenBack(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 0)
		keys := bytesOf([]string{key})
		watch, _ := w.locker.Watch(t.Context(), 0, keys)
		w.play("ok@9ms ok@9ms ok@9ms ok@9ms ok")
		w.put("B B B B A", 0)
		set := [][][]byte{bytesOf([]string{"SET", key, tokenC})}
		wantReply(t, w.locker.Run(t.Context(), RunRequest{Keys: keys, Transaction: set, Watches: []*Watch{watch}}), "*-1\r\n")
		w.elapse(0)
		w.wantValues("B B B B A")
	})
}
