package redlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A listenerLog is a subscriber that writes down what it hears.
type listenerLog struct {
	*Subscriber
	mu    sync.Mutex
	words []string
}

func newListenerLog(l *Locker) *listenerLog {
	x := &listenerLog{}
	x.Subscriber = l.Subscriber(func(e Event) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.words = append(x.words, eventWord(e))
	})
	return x
}

func eventWord(e Event) string {
	switch e.Kind {
	case EventMessage:
		return fmt.Sprintf("%s:%s", e.Channel, e.Payload)
	case EventPatternMessage:
		return fmt.Sprintf("%s>%s:%s", e.Pattern, e.Channel, e.Payload)
	case EventGap:
		return "gap"
	}
	if e.Key == nil {
		return "any"
	}
	return "key " + string(e.Key)
}

// take returns what was heard since.
func (x *listenerLog) take() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	words := strings.Join(x.words, ", ")
	x.words = nil
	return words
}

func (x *listenerLog) want(t *testing.T, words string) {
	t.Helper()
	synctest.Wait()
	if got := x.take(); got != words {
		t.Errorf("heard %q, want %q", got, words)
	}
}

// publish lets masters, counted from 1, publish what their script says.
func (w *timeline) publish(payload string, masters ...int) {
	for _, m := range masters {
		w.masters[m-1].publish("chan", payload)
	}
}

func (w *timeline) wantListening(master int, want string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.masters[master-1].listening(); got != want {
		w.t.Errorf("master %d tells of %q, want %q", master, got, want)
	}
}

// dials is how often a master, counted from 1, was connected to.
func (w *timeline) dials(master int) int {
	k := w.links[master-1]
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dialled
}

const allOK = "ok ok ok ok ok"

func TestListenerHearsAMessageOnce(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b, other := newListenerLog(w.locker), newListenerLog(w.locker), newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan")
		b.PSubscribe(t.Context(), "ch*", "other*")
		other.Subscribe(t.Context(), "another")
		w.publish("free", 1, 2, 3, 4, 5)
		w.elapse(10 * second)
		a.want(t, "chan:free")
		b.want(t, "ch*>chan:free")

		w.publish("free", 1, 2, 3, 4, 5)
		w.publish("free", 1, 2, 3, 4, 5)
		w.elapse(10 * second)
		a.want(t, "chan:free, chan:free")
		b.want(t, "ch*>chan:free, ch*>chan:free")

		w.publish("free", 2, 5)
		w.elapse(40 * time.Millisecond)
		a.want(t, "")
		w.elapse(10 * second)
		a.want(t, "chan:free")
		b.want(t, "ch*>chan:free")
		other.want(t, "")
	})
}

func TestListenersAreOpenedAndClosedWithWhatIsWanted(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		dialled := func() int { return w.dials(1) }
		before := dialled()
		a, b := newListenerLog(w.locker), newListenerLog(w.locker)
		w.elapse(0)
		if dialled() != before {
			t.Error("a listener connects although nothing is wanted")
		}
		a.Subscribe(t.Context(), "chan", "x")
		b.Subscribe(t.Context(), "chan")
		b.Subscribe(t.Context(), "chan")
		a.Track(t.Context(), "k")
		w.wantListening(1, "chan changes x")
		b.Unsubscribe("chan", "never")
		a.Unsubscribe("x")
		a.Untrack("k", "never")
		w.wantListening(1, "chan changes")
		w.elapse(trackingLinger + second)
		w.wantListening(1, "chan")
		a.TrackPrefix(t.Context(), "")
		b.Track(t.Context(), "k")
		a.Close()
		w.elapse(trackingLinger + second)
		w.wantListening(1, "changes")
		b.Close()
		w.elapse(listenerLinger - second)
		if dialled() != before+1 {
			t.Errorf("dialled %d times, want once", dialled()-before)
		}
		w.elapse(trackingLinger + 2*second)
		w.wantListening(1, "")
		c := newListenerLog(w.locker)
		c.Subscribe(t.Context(), "chan")
		if dialled() != before+2 {
			t.Errorf("dialled %d times, want twice", dialled()-before)
		}
		w.publish("free", 1, 2, 3)
		w.elapse(0)
		c.want(t, "chan:free")
		a.want(t, "")
	})
}

func TestSubscribeWaitsForTheMasters(t *testing.T) {
	onTimeline(t, "ok@5ms ok@5ms ok@5ms ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
		a := newListenerLog(w.locker)
		took := func() time.Duration {
			began := time.Now()
			a.Subscribe(t.Context(), fmt.Sprint("chan", began.UnixNano()))
			return time.Since(began)
		}
		took()
		if d := took(); d != 20*time.Millisecond {
			t.Errorf("returned after %v, want when the slowest has confirmed", d)
		}
		w.play("ok ok ok ok hang")
		if d := took(); d != timeout {
			t.Errorf("with a master stopped: %v, want %v", d, timeout)
		}
		gone, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		began := time.Now()
		a.Track(gone, "k")
		if d := time.Since(began); d != 30*time.Millisecond {
			t.Errorf("with a client gone: %v", d)
		}
		w.masters[4].resume()
		w.elapse(0)
		w.play("ok ok down down down")
		w.elapse(0)
		if d := took(); d > timeout {
			t.Errorf("with three masters down: %v", d)
		}
	})
}

func TestFirstSubscribeWaitsForAQuorum(t *testing.T) {
	onTimeline(t, "ok@40ms ok@40ms ok@40ms ok@40ms mute", func(t *testing.T, w *timeline) {
		a := newListenerLog(w.locker)
		began := time.Now()
		a.Subscribe(t.Context(), "chan")
		if d := time.Since(began); d != 80*time.Millisecond {
			t.Errorf("%v, want two answers of four masters", d)
		}
		w.publish("free", 1, 2, 3)
		w.elapse(0)
		a.want(t, "chan:free")
	})
}

func TestReconnectedListenerMakesEveryKeyChanged(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b := newListenerLog(w.locker), newListenerLog(w.locker)
		a.Track(t.Context(), "k")
		a.Subscribe(t.Context(), "chan")
		b.Subscribe(t.Context(), "chan")
		w.elapse(second)
		a.want(t, "")
		w.masters[1].endListeners()
		w.elapse(second)
		a.want(t, "any")
		b.want(t, "") // a minority's messages come from others, too
		w.play("ok ok down ok ok")
		w.publish("free", 1, 2, 4)
		w.elapse(0)
		a.want(t, "chan:free")
		w.masters[2].restart(true)
		w.elapse(5 * second)
		a.want(t, "any")
		b.want(t, "chan:free")
		w.wantListening(3, "chan changes")
	})
}

func TestGapIsToldWhenAQuorumIsHeardAgain(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, late, only := newListenerLog(w.locker), newListenerLog(w.locker), newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan", "x")
		only.Track(t.Context(), "k")
		w.play("ok ok down down ok")
		w.elapse(second)
		a.want(t, "")
		w.play("ok ok down down down")
		w.elapse(second)
		a.want(t, "")
		late.Subscribe(t.Context(), "chan")
		late.Track(t.Context(), "k")
		w.masters[4].restart(true)
		w.elapse(5 * second)
		a.want(t, "gap")
		late.want(t, "gap, any")
		only.want(t, "any")
		w.masters[2].restart(true)
		w.masters[3].restart(true)
		w.elapse(5 * second)
		a.want(t, "")
		only.want(t, "any, any")
	})
}

// A listener that was cut without a sign is missed only later: what matters is
// who was listened to when it could not hear any more.
func TestGapThatIsNoticedLate(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.play("ok ok ok ok down")
		w.elapse(second)
		w.play("ok ok ok down down")
		w.links[2].abandon() // two are heard, and three seem to be
		w.publish("lost", 3, 4, 5)
		w.masters[3].restart(true)
		w.masters[4].restart(true)
		w.elapse(2 * second) // never fewer than three seemed to be heard
		a.want(t, "")
		w.elapse(5 * second)
		a.want(t, "gap")
		w.elapse(5 * second)
		a.want(t, "")
	})
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.links[2].abandon()
		w.links[3].abandon()
		w.elapse(10 * second)
		a.want(t, "") // three were heard all the time
		w.publish("free", 3, 4)
		w.elapse(second)
		a.want(t, "chan:free")
	})
}

func TestMasterThatPublishesAfterItWasStopped(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan")
		w.elapse(second)
		w.play("ok ok ok ok hang")
		w.publish("free", 1, 2, 3, 4)
		w.elapse(1500 * time.Millisecond)
		w.masters[4].resume()
		w.elapse(20 * time.Millisecond)
		w.publish("free", 5)
		w.elapse(second)
		a.want(t, "chan:free")
	})
}

func TestBrokenBytesEndOneListenerOnly(t *testing.T) {
	for _, garbage := range []string{
		"hello\r\n", "+PONG\r\n", ":1\r\n", "-ERR what\r\n", ">1\r\n$-7\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "*1\r\n$1\r\nx\r\n",
		">3\r\n$9\r\nsubscribe\r\n$1\r\ny\r\n:1\r\n", ">2\r\n$10\r\ninvalidate\r\n:1\r\n", "*0\r\n", "|1\r\n+a\r\n+b\r\n>0\r\n", "$99999999999999999999\r\n",
	} {
		onTimeline(t, allOK, func(t *testing.T, w *timeline) {
			a := newListenerLog(w.locker)
			a.Subscribe(t.Context(), "chan")
			before := make([]int, 5)
			for i := range w.links {
				before[i] = w.dials(i + 1)
			}
			w.masters[0].say(garbage)
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
		a := newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan")
		dialled := w.dials(1)
		w.masters[0].say(">2\r\n$7\r\nmonitor\r\n$1\r\nx\r\n>0\r\n>4\r\n$7\r\nmessage\r\n*1\r\n*0\r\n_\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nx\r\n")
		w.elapse(4 * second)
		a.want(t, "")
		if w.dials(1) != dialled {
			t.Error("the connection was given up")
		}
	})
}

func TestMasterThatRefusesSubscribe(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		w.masters[0].deaf, w.masters[1].deaf = true, true
		a := newListenerLog(w.locker)
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

func TestSlowSubscriberHoldsUpNobody(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		enough, heard := make(chan struct{}), 0
		var last string
		slow := w.locker.Subscriber(func(e Event) {
			<-enough
			heard++
			last = eventWord(e)
		})
		a := newListenerLog(w.locker)
		slow.Subscribe(t.Context(), "chan")
		a.Subscribe(t.Context(), "chan")
		slow.Track(t.Context(), "k")
		for i := range maxPending + 100 {
			w.publish(fmt.Sprint(i), 1, 2, 3)
			if i%1000 == 0 {
				w.elapse(time.Millisecond)
			}
		}
		w.elapse(second)
		if n := strings.Count(a.take(), "chan:"); n != maxPending+100 {
			t.Errorf("the other one heard %d messages", n)
		}
		close(enough)
		w.elapse(second)
		if heard > maxPending+1 || heard < 2 || last != fmt.Sprint("chan:", maxPending+99) {
			t.Errorf("the slow one heard %d events, the last %q", heard, last)
		}
		slow.Close()
		w.publish("free", 1, 2, 3)
		w.elapse(second)
		if last == "chan:free" {
			t.Error("it heard something after Close")
		}
	})
}

func TestCloseWaitsForHear(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		leave, inside := make(chan struct{}), make(chan struct{})
		s := w.locker.Subscriber(func(Event) {
			close(inside)
			<-leave
		})
		s.Subscribe(t.Context(), "chan")
		w.publish("1", 1, 2, 3)
		w.publish("2", 1, 2, 3)
		<-inside
		closed := make(chan struct{})
		go func() {
			s.Close()
			close(closed)
		}()
		synctest.Wait()
		if isClosed(closed) {
			t.Error("closed while hear was called")
		}
		close(leave)
		<-closed
		w.elapse(second) // a second call of hear would close inside again
		s.Close()
		s.Subscribe(t.Context(), "chan")
		w.wantListening(1, "")
	})
}

func TestTrackedKeysOnTheMasters(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b, c := newListenerLog(w.locker), newListenerLog(w.locker), newListenerLog(w.locker)
		a.Track(t.Context(), "lock:a", "lock:b")
		b.TrackPrefix(t.Context(), "lock:")
		b.Track(t.Context(), "lock:a")
		c.TrackPrefix(t.Context(), "other:")
		for _, m := range w.masters[:3] {
			m.invalidate("lock:a", "unknown")
		}
		w.elapse(second)
		a.want(t, "key lock:a")
		b.want(t, "key lock:a")
		w.masters[0].invalidate("lock:c")
		w.elapse(10 * time.Millisecond)
		b.want(t, "")
		w.elapse(10 * time.Millisecond)
		b.want(t, "key lock:c")
		for _, m := range w.masters {
			m.invalidate()
		}
		w.elapse(second)
		a.want(t, "any, any")
		b.want(t, "any, any")
		c.want(t, "any, any")
		b.UntrackPrefix("lock:")
		w.masters[0].invalidate("lock:c")
		w.elapse(second)
		b.want(t, "")
	})
}

func TestListenerOfAReplacedMaster(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := newListenerLog(w.locker)
		a.Subscribe(t.Context(), "chan")
		a.Track(t.Context(), "k")
		// What Reload does to the master.
		other := *w.locker.masters[0].server.Load()
		other.Name = "another"
		w.locker.masters[0].server.Store(&other)
		dialled := w.dials(1)
		w.elapse(2 * second)
		a.want(t, "any")
		if w.dials(1) == dialled {
			t.Error("it still listens to the server that was replaced")
		}
	})
}
