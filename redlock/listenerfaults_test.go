package redlock

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Masters that go, come back, fall silent or lie, and the subscribers that must hear of it.

// Who left its channels before a quorum was heard again has missed nothing. Changes of keys that are
// reported are no sign that messages are heard.
func TestGapIsOfMessagesThatAreWanted(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		for _, m := range w.masters[:3] {
			m.Deaf = true
		}
		a, left := w.listen(), w.listen()
		a.Subscribe(t.Context(), "chan")
		a.Track(t.Context(), "k")
		left.Subscribe(t.Context(), "chan")
		left.Unsubscribe("chan")
		w.masters[4].EndListeners()
		w.elapse(second)
		a.want(t, "any")
		for _, m := range w.masters[:3] {
			m.Deaf = false
			m.EndListeners()
		}
		w.elapse(second)
		left.Subscribe(t.Context(), "another")
		w.masters[4].EndListeners()
		w.elapse(5 * second)
		if words := a.take(); strings.Count(words, "gap") != 1 {
			t.Errorf("heard %q, want one gap", words)
		}
		left.want(t, "")
	})
}

// A crowd of messages comes before the answer to a PING. As long as they come, the connection stays.
func TestListenerStaysWhileMessagesCome(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		connection := func() int64 {
			m := w.masters[4]
			if all := m.Listeners(); len(all) > 0 {
				return all[0].ID
			}
			return 0
		}
		before := connection()
		w.links[4].SetDelay(1500*time.Millisecond, 0) // an answer takes longer than a stall
		for range 100 {
			w.publish("free", 1, 2, 3, 4, 5)
			w.elapse(100 * time.Millisecond)
			if connection() != before {
				t.Fatal("the connection was given up while messages came")
			}
		}
	})
}

func TestListenerOfAReplacedMaster(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		a.Track(t.Context(), "k")
		dialled := w.dials(1)
		cfg := *w.locker.settings()
		cfg.Masters = slices.Clone(cfg.Masters)
		cfg.Masters[0].Name = "another"
		if err := w.locker.Reload(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		w.elapse(2 * second)
		a.want(t, "any")
		if w.dials(1) == dialled {
			t.Error("it still listens to the server that was replaced")
		}
	})
}
