package redlock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/notify"
)

// A listenerLog is a subscriber that records what it hears.
type listenerLog struct {
	*notify.Subscriber
	name  string
	w     *timeline
	words []string
}

func (w *timeline) listen() *listenerLog {
	x := &listenerLog{w: w}
	x.Subscriber = w.locker.Subscriber(func(e notify.Event) {
		x.words = append(x.words, eventWord(e))
	})
	return x
}

// listenTo makes a subscriber of a process.
func (w *timeline) listenTo(l *Locker, name string) *listenerLog {
	x := &listenerLog{w: w, name: name}
	x.Subscriber = l.Subscriber(func(e notify.Event) { x.words = append(x.words, eventWord(e)) })
	return x
}

// bySubscriber plays what a subscriber does. It waits for the masters like a client.
func (s *stage) bySubscriber(x *listenerLog, words []string) string {
	r := s.request(words)
	began := time.Now()
	switch names := r.words[1:]; r.words[0] {
	case "SUBSCRIBE":
		x.Subscribe(r.ctx, names...)
	case "PSUBSCRIBE":
		x.PSubscribe(r.ctx, names...)
	case "UNSUBSCRIBE":
		x.Unsubscribe(names...)
	case "PUNSUBSCRIBE":
		x.PUnsubscribe(names...)
	case "tracks":
		x.Track(r.ctx, names...)
	case "tracks-prefix":
		x.TrackPrefix(r.ctx, strings.Join(names, ""))
	case "untracks":
		x.Untrack(names...)
	case "untracks-prefix":
		x.UntrackPrefix(names[0])
	case "closes":
		x.Close()
	default:
		s.t.Fatalf("no subscriber does %q", words)
	}
	if took := time.Since(began); took > 0 {
		return fmt.Sprintf("after %v\n", took)
	}
	return ""
}

func eventWord(e notify.Event) string {
	switch e.Kind {
	case notify.EventMessage:
		return fmt.Sprintf("%s:%s", e.Channel, e.Payload)
	case notify.EventPatternMessage:
		return fmt.Sprintf("%s>%s:%s", e.Pattern, e.Channel, e.Payload)
	case notify.EventGap:
		return "gap"
	}
	if e.Key == nil {
		return "any"
	}
	return "key " + string(e.Key)
}

// take returns what was heard since the last call.
func (x *listenerLog) take() string {
	words := strings.Join(x.words, ", ")
	x.words = nil
	return words
}

func (x *listenerLog) want(t *testing.T, words string) {
	t.Helper()
	x.w.Settle()
	if got := x.take(); got != words {
		t.Errorf("heard %q, want %q", got, words)
	}
}

// publish makes masters, counted from 1, publish what their script says.
func (w *timeline) publish(payload string, masters ...int) {
	for _, m := range masters {
		w.masters[m-1].Publish("chan", payload)
	}
}

func (w *timeline) wantListening(master int, want string) {
	w.t.Helper()
	w.Settle()
	if got := w.masters[master-1].Listening(); got != want {
		w.t.Errorf("master %d tells of %q, want %q", master, got, want)
	}
}

// dials counts the connections to a master, counted from 1.
func (w *timeline) dials(master int) int {
	return w.links[master-1].Dialled
}

const allOK = "ok ok ok ok ok"

func TestListenerHearsAMessageOnce(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b, other := w.listen(), w.listen(), w.listen()
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

// A message costs a master the same, however many channels and patterns are wanted: the masters are
// asked for one pattern, and the proxy compares.
func TestListenerAsksForOnePattern(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b := w.listen(), w.listen()
		for i := range 1000 {
			a.PSubscribe(t.Context(), fmt.Sprintf("unlike%d*", i), "c?an", "unlike*")
		}
		b.PSubscribe(t.Context(), "ch[a]n", "*")
		w.wantListening(1, "*")
		w.publish("free", 1, 2, 3, 4, 5)
		w.elapse(10 * second)
		a.want(t, "c?an>chan:free")
		heard := strings.Split(b.take(), ", ")
		slices.Sort(heard)
		if !slices.Equal(heard, []string{"*>chan:free", "ch[a]n>chan:free"}) {
			t.Errorf("heard %q", heard)
		}
		b.PUnsubscribe("*", "never")
		a.Close()
		w.wantListening(1, "*")
		w.publish("again", 1, 2, 3, 4, 5)
		w.elapse(10 * second)
		a.want(t, "")
		b.want(t, "ch[a]n>chan:again")
		b.PUnsubscribe("ch[a]n")
		w.elapse(5*second + second)
		w.wantListening(1, "")
		b.PSubscribe(t.Context(), "ch*")
		w.publish("last", 1, 2, 3, 4, 5)
		w.elapse(10 * second)
		b.want(t, "ch*>chan:last")
	})
}

func TestListenersAreOpenedAndClosedWithWhatIsWanted(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		dialled := func() int { return w.dials(1) }
		before := dialled()
		a, b := w.listen(), w.listen()
		w.elapse(0)
		if dialled() != before {
			t.Error("a listener connects although nothing is wanted")
		}
		a.Subscribe(t.Context(), "chan", "x")
		b.Subscribe(t.Context(), "chan")
		b.Subscribe(t.Context(), "chan")
		a.Track(t.Context(), "k")
		w.wantListening(1, "* changes")
		b.Unsubscribe("chan", "never")
		a.Unsubscribe("x")
		a.Untrack("k", "never")
		w.wantListening(1, "* changes")
		w.elapse(5*second + second)
		w.wantListening(1, "*")
		a.TrackPrefix(t.Context(), "")
		b.Track(t.Context(), "k")
		a.Close()
		w.elapse(5*second + second)
		w.wantListening(1, "changes")
		b.Close()
		w.elapse(60*second - second)
		if dialled() != before+1 {
			t.Errorf("dialled %d times, want once", dialled()-before)
		}
		w.elapse(5*second + 2*second)
		w.wantListening(1, "")
		c := w.listen()
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
	took := func(do func()) time.Duration {
		began := time.Now()
		do()
		return time.Since(began)
	}
	onTimeline(t, "ok@5ms ok@5ms ok@5ms ok@10ms ok@10ms", func(t *testing.T, w *timeline) {
		a := w.listen()
		w.elapse(second)
		if d := took(func() { a.Subscribe(t.Context(), "chan") }); d != 20*time.Millisecond {
			t.Errorf("returned after %v, want two answers of the slowest", d)
		}
		if d := took(func() { a.Subscribe(t.Context(), "another") }); d != 0 {
			t.Errorf("%v for one more channel: the masters tell all messages already", d)
		}
		w.play("ok ok ok ok pause")
		if d := took(func() { a.Track(t.Context(), "k") }); d != timeout {
			t.Errorf("with a master stopped: %v, want %v", d, timeout)
		}
	})
	onTimeline(t, "ok ok ok ok mute", func(t *testing.T, w *timeline) {
		a := w.listen()
		if d := took(func() { a.Subscribe(t.Context(), "chan") }); d != timeout {
			t.Errorf("with a master that does not answer from the beginning: %v, want %v", d, timeout)
		}
	})
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a := w.listen()
		a.Subscribe(t.Context(), "chan")
		w.play("ok ok pause pause pause")
		gone := w.goneAfter(30 * time.Millisecond)
		if d := took(func() { a.Track(gone, "k") }); d != 30*time.Millisecond {
			t.Errorf("with a client gone: %v", d)
		}
		if d := took(func() { a.Track(t.Context(), "k") }); d > 2*second {
			t.Errorf("with three masters stopped: %v, want a stall at most", d)
		}
	})
	onTimeline(t, "ok ok kill kill kill", func(t *testing.T, w *timeline) {
		a := w.listen()
		if d := took(func() { a.Subscribe(t.Context(), "chan") }); d > timeout {
			t.Errorf("with three masters down: %v", d)
		}
	})
}

// A message that a quorum published is heard as soon as Subscribe has returned.
func TestFirstSubscribeWaitsForAQuorum(t *testing.T) {
	onTimeline(t, "ok@40ms ok@40ms ok@40ms ok@40ms mute", func(t *testing.T, w *timeline) {
		a := w.listen()
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

func TestSlowSubscriberHoldsUpNobody(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		enough, heard := make(chan struct{}), 0
		var last string
		slow := w.locker.Subscriber(func(e notify.Event) {
			w.Wait(loop.Forever, enough)
			heard++
			last = eventWord(e)
		})
		a := w.listen()
		slow.Subscribe(t.Context(), "chan")
		a.Subscribe(t.Context(), "chan")
		slow.Track(t.Context(), "k")
		for i := range (1 << 14) + 100 {
			w.publish(fmt.Sprint(i), 1, 2, 3)
			if i%1000 == 0 {
				w.elapse(time.Millisecond)
			}
		}
		w.elapse(second)
		if n := strings.Count(a.take(), "chan:"); n != (1<<14)+100 {
			t.Errorf("the other one heard %d messages", n)
		}
		close(enough)
		w.elapse(second)
		if heard > (1<<14)+1 || heard < 2 || last != fmt.Sprint("chan:", (1<<14)+99) {
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
		s := w.locker.Subscriber(func(notify.Event) {
			close(inside)
			w.Wait(loop.Forever, leave)
		})
		s.Subscribe(t.Context(), "chan")
		w.publish("1", 1, 2, 3)
		w.publish("2", 1, 2, 3)
		w.Wait(loop.Forever, inside)
		isClosed := false
		closing := w.crew()
		closing.Go(func() { s.Close(); isClosed = true })
		w.Settle()
		if isClosed {
			t.Error("closed while hear was called")
		}
		close(leave)
		closing.Wait()
		w.elapse(second) // a second call of hear would close inside again
		s.Close()
		w.elapse(5*second + second)
		s.Subscribe(t.Context(), "chan")
		w.wantListening(1, "")
	})
}

func TestTrackedKeysOnTheMasters(t *testing.T) {
	onTimeline(t, allOK, func(t *testing.T, w *timeline) {
		a, b, c := w.listen(), w.listen(), w.listen()
		a.Track(t.Context(), "lock:a", "lock:b")
		b.TrackPrefix(t.Context(), "lock:")
		b.Track(t.Context(), "lock:a")
		c.TrackPrefix(t.Context(), "other:")
		for _, m := range w.masters[:3] {
			m.Invalidate("lock:a", "unknown")
		}
		w.elapse(second)
		a.want(t, "key lock:a")
		b.want(t, "key lock:a")
		w.masters[0].Invalidate("lock:c")
		w.elapse(10 * time.Millisecond)
		b.want(t, "")
		w.elapse(10 * time.Millisecond)
		b.want(t, "key lock:c")
		for _, m := range w.masters {
			m.Invalidate()
		}
		w.elapse(second)
		a.want(t, "any, any")
		b.want(t, "any, any")
		c.want(t, "any, any")
		b.UntrackPrefix("lock:")
		w.masters[0].Invalidate("lock:c")
		w.elapse(second)
		b.want(t, "")
	})
}
