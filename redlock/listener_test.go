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
