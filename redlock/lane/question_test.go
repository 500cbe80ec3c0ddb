package lane

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock/quorum"
)

const five quorum.Set = 1<<5 - 1

func nothing(quorum.Set) {}

// asked sends a question and returns which of five masters got it.
func (l *Lanes[A]) asked(q *Question) (to quorum.Set) {
	l.Send(q, five, func(free quorum.Set) { to = free })
	return to
}

func about(keys ...string) *Question { return &Question{Keys: keys, Creates: true} }

func wantSet(t *testing.T, got, want quorum.Set) {
	t.Helper()
	if got != want {
		t.Errorf("%05b, want %05b", got, want)
	}
}

// A master that owes an answer about a key is not asked about that key again.
func TestMastersThatOweAreNotAsked(t *testing.T) {
	l := New[string](nil)
	first, second, third := about("a"), about("a", "b"), about("b")
	wantSet(t, l.asked(first), five)
	wantSet(t, l.asked(about("c")), five)
	l.Settle(first, 0b00111)
	wantSet(t, l.asked(second), 0b00111)
	wantSet(t, l.asked(third), 0b11000)
	l.Settle(second, five)
	l.Settle(third, five)
	wantSet(t, l.asked(about("a")), 0b00111)
}

// Settling an answer again changes nothing, because others may have asked the master
// since.
func TestAnAnswerIsSettledOnce(t *testing.T) {
	l := New[string](nil)
	first, second := about("a"), about("a")
	l.asked(first)
	l.Settle(first, five)
	l.asked(second)
	l.Settle(first, five)
	wantSet(t, l.asked(about("a")), 0)
	l.Settle(second, five)
	l.wantEmpty(t)
}

// A script without lock keys makes a question about no keys. Its masters may answer at
// the same moment, and no shard's mutex separates them. The race detector checks this.
func TestAQuestionAboutNoKeysIsSettledByAllAtOnce(t *testing.T) {
	l := New[string](nil)
	q := about()
	wantSet(t, l.asked(q), five)
	var answers sync.WaitGroup
	for m := range 5 {
		answers.Go(func() { l.Settle(q, 1<<m) })
	}
	answers.Wait()
	l.wantEmpty(t)
}

// A question that creates nothing goes to all masters, and none owes an answer to it.
func TestQuestionsThatCreateNothingAreNotHeldUp(t *testing.T) {
	l := New[string](nil)
	creates, release := about("a"), &Question{Keys: []string{"a"}}
	before := l.Creations(0, "a")
	wantSet(t, l.asked(release), five)
	l.Settle(release, five)
	l.wantEmpty(t)
	if n := l.Creations(0, "a"); n != before {
		t.Errorf("%d creations, %d before", n, before)
	}
	wantSet(t, l.asked(creates), five)
	wantSet(t, l.asked(release), five)
	if n := l.Creations(0, "a"); n == before {
		t.Errorf("still %d creations", n)
	}
	l.Settle(creates, five)
	l.wantEmpty(t)
}

func TestAQuestionWaitsForOutstandingAnswers(t *testing.T) {
	three := func(outstanding quorum.Set) bool { return (five &^ outstanding).Len() < 3 }
	synctest.Test(t, func(t *testing.T) {
		l, began := New[string](nil), time.Now()
		first := about("a")
		l.asked(first)
		l.AwaitFree(about("b"), time.Second, three)
		l.AwaitFree(&Question{Keys: []string{"a"}}, time.Second, three)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v without need", waited)
		}
		turn, _ := l.Enter(t.Context(), 0, []string{"a", "b"}, Queueing{})
		for i := range 5 {
			time.AfterFunc(time.Duration(i+1)*100*time.Millisecond, func() { l.Settle(first, 1<<i) })
		}
		l.AwaitFree(about("b", "a"), time.Second, three)
		if waited := time.Since(began); waited != 300*time.Millisecond {
			t.Errorf("waited %v until three were free", waited)
		}
		turn.Leave()
		time.Sleep(time.Second)
		l.asked(about("a"))
		began = time.Now()
		l.AwaitFree(about("a"), time.Second, three)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("waited %v for what does not come", waited)
		}
	})
}

// All masters get the questions about a key in one order, also if a question is about
// several keys.
func TestQuestionsAreInOneOrderOnAllMasters(t *testing.T) {
	l := New[string](nil)
	var masters [3]struct {
		mu    sync.Mutex
		about map[string][]int
	}
	for i := range masters {
		masters[i].about = map[string][]int{}
	}
	var running sync.WaitGroup
	for i := range 6 {
		running.Go(func() {
			for n := range 300 {
				keys := []string{strconv.Itoa(n % 5), strconv.Itoa((n + i) % 5), strconv.Itoa(i)}
				q := &Question{Keys: keys, Creates: n%2 == 0}
				l.Send(q, five, func(quorum.Set) {
					for m := range masters {
						masters[m].mu.Lock()
						for _, key := range keys {
							masters[m].about[key] = append(masters[m].about[key], i*1000+n)
						}
						masters[m].mu.Unlock()
					}
				})
				l.Settle(q, five)
			}
		})
	}
	running.Wait()
	for key, order := range masters[0].about {
		for m := range masters {
			if !slices.Equal(masters[m].about[key], order) {
				t.Errorf("master %d has the questions about %s in another order", m, key)
			}
		}
	}
	l.wantEmpty(t)
}

// A panic while a question is sent leaves nothing locked.
func TestADefectWhileSendingFreesTheLanes(t *testing.T) {
	l, q := New[string](nil), about("a", "b")
	func() {
		defer func() { _ = recover() }()
		l.Send(q, five, func(quorum.Set) { panic("defect") })
	}()
	l.Settle(q, five)
	wantSet(t, l.asked(about("b", "a")), five)
}
