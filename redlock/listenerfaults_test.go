package redlock

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// Masters that go, come back, fall silent or lie, and the subscribers that must hear of it.

func TestReconnectedListenerMakesEveryKeyChanged(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b := w.listen(), w.listen()
		a.Track(t.Context(), "k")
		a.Subscribe(t.Context(), "chan")
		b.Subscribe(t.Context(), "chan")
		w.elapse(second)
		a.want(t, "")
		w.masters[1].EndListeners()
		w.elapse(second)
		a.want(t, "any")
		b.want(t, "") // a minority's messages come from others, too
		w.play("ok ok kill ok ok")
		w.publish("free", 1, 2, 4)
		w.elapse(0)
		a.want(t, "chan:free")
		w.masters[2].Restart(true)
		w.elapse(5 * second)
		a.want(t, "any")
		b.want(t, "chan:free")
		w.wantListening(3, "* changes")
	})
}

func TestGapIsToldWhenAQuorumIsHeardAgain(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, late, only := w.listen(), w.listen(), w.listen()
		a.Subscribe(t.Context(), "chan", "x")
		only.Track(t.Context(), "k")
		w.play("ok ok kill kill ok")
		w.elapse(second)
		a.want(t, "")
		w.play("ok ok kill kill kill")
		w.elapse(second)
		a.want(t, "")
		late.Subscribe(t.Context(), "chan")
		lateKey := w.listen()
		lateKey.Track(t.Context(), "k")
		w.masters[4].Restart(true)
		w.elapse(5 * second)
		a.want(t, "gap")
		late.want(t, "gap")
		lateKey.want(t, "any")
		only.want(t, "any")
		w.masters[2].Restart(true)
		w.masters[3].Restart(true)
		w.elapse(5 * second)
		a.want(t, "")
		only.want(t, "any, any")
	})
}

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

// A listener that was cut without a sign is noticed only later. What counts is which
// masters were heard at the moment when it was cut.
func TestGapThatIsNoticedLate(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.play("ok ok ok ok kill")
		w.elapse(second)
		w.play("ok ok ok kill kill")
		w.links[2].Abandon() // two are heard, and three seem to be
		w.publish("lost", 3, 4, 5)
		w.masters[3].Restart(true)
		w.masters[4].Restart(true)
		w.elapse(2 * second) // never fewer than three seemed to be heard
		a.want(t, "")
		w.elapse(5 * second)
		a.want(t, "gap")
		w.elapse(5 * second)
		a.want(t, "")
	})
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.links[2].Abandon()
		w.links[3].Abandon()
		w.elapse(10 * second)
		a.want(t, "") // three were heard all the time
		w.publish("free", 3, 4)
		w.elapse(second)
		a.want(t, "chan:free")
	})
}

func TestMasterThatPublishesAfterItWasStopped(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.play("ok ok ok ok pause")
		w.publish("free", 1, 2, 3, 4)
		w.elapse(1500 * time.Millisecond)
		w.masters[4].Resume()
		w.elapse(20 * time.Millisecond)
		w.publish("free", 5)
		w.elapse(second)
		a.want(t, "chan:free")
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

func TestBrokenBytesEndOneListenerOnly(t *testing.T) {
	for _, garbage := range []string{
		"hello\r\n", "+PONG\r\n", ":1\r\n", "-ERR what\r\n", ">1\r\n$-7\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "*1\r\n$1\r\nx\r\n",
		">3\r\n$12\r\npunsubscribe\r\n$1\r\n*\r\n:1\r\n", ">2\r\n$10\r\ninvalidate\r\n:1\r\n", "*0\r\n", "|1\r\n+a\r\n+b\r\n>0\r\n", "$99999999999999999999\r\n",
	} {
		onTimeline(t, allOK, func(t *testing.T, w *timeline) {
			a := w.listen()
			a.Subscribe(t.Context(), "chan")
			before := make([]int, 5)
			for i := range w.links {
				before[i] = w.dials(i + 1)
			}
			w.masters[0].Say(garbage)
			w.elapse(4 * second)
			for i := range w.links {
				want := before[i]
				if i == 0 {
					want++
				}
				if n := w.dials(i + 1); n != want {
					t.Errorf("%q: master %d was dialled %d times, want %d", garbage, i+1, n, want)
				}
			}
			w.publish("free", 1, 2, 5)
			w.elapse(10 * time.Millisecond)
			a.want(t, "chan:free")
		})
	}
}

func TestUnknownPushesAreIgnored(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		dialled := w.dials(1)
		w.masters[0].Say(">2\r\n$7\r\nmonitor\r\n$1\r\nx\r\n>0\r\n>4\r\n$7\r\nmessage\r\n*1\r\n*0\r\n_\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nx\r\n")
		w.elapse(4 * second)
		a.want(t, "")
		if w.dials(1) != dialled {
			t.Error("the connection was given up")
		}
	})
}

func TestMasterThatRefusesSubscribe(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		w.masters[0].Deaf, w.masters[1].Deaf = true, true
		a := w.listen()
		began := time.Now()
		a.Subscribe(t.Context(), "chan")
		if d := time.Since(began); d >= timeout {
			t.Errorf("%v: a refusal is an answer", d)
		}
		w.publish("free", 3, 4, 5)
		w.elapse(4 * second)
		a.want(t, "chan:free")
	})
}

// A master that cannot save refuses PING, and goes on telling what it executes. Nobody's rights are to be mended.
func TestListenerOfAMasterThatCannotSave(t *testing.T) {
	var log lockedText
	cfg := timelineConfig()
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	onTimelineWith(t, cfg, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		dialled := w.dials(1)
		w.masters[0].Refuse(unsaved)
		w.elapse(10 * second)
		w.publish("free", 1, 2, 3)
		w.elapse(0)
		a.want(t, "chan:free")
		if text := log.String(); w.dials(1) != dialled || strings.Contains(text, "refuses what wakes") {
			t.Errorf("dialled %d times:\n%s", w.dials(1)-dialled, text)
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

// A listening connection that ends alone is a warning. One that ends with its master is none, because the master's own
// absence is told.
func TestTimelineAListeningConnectionThatEndsAloneIsLogged(t *testing.T) {
	withDefects(t, nil, func(t *testing.T, w *timeline, log *lockedText) {
		const line = "the connection that listens to a lock master had ended"
		w.listen().Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.play("ok ok kill ok ok")
		w.elapse(5 * second)
		w.masters[2].Restart(true)
		w.elapse(5 * second)
		if strings.Contains(log.String(), line) {
			t.Errorf("a master that was away is told:\n%s", log.String())
		}
		w.masters[1].EndListeners()
		w.elapse(5 * second)
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("it is in %d lines:\n%s", n, log.String())
		}
	})
}
