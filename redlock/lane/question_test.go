package lane

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"redlock-proxy/redlock/quorum"
)

const five quorum.Set = 1<<5 - 1

// wantEmpty fails the test if any lane is left.
func (l *Lanes[A]) wantEmpty(t *testing.T) {
	t.Helper()
	if n := l.count(); n > 0 {
		t.Errorf("%d lanes are left", n)
	}
}

// A script without lock keys makes a question about no keys. Its masters may answer at
// the same moment, and no shard's mutex separates them. The race detector checks this.
func TestAQuestionAboutNoKeysIsSettledByAllAtOnce(t *testing.T) {
	l := New[string](nil)
	q := &Question{Creates: true}
	l.Send(q, five, func(free quorum.Set) {
		if free != five {
			t.Errorf("%05b are asked", free)
		}
	})
	var answers sync.WaitGroup
	for m := range 5 {
		answers.Go(func() { l.Settle(q, 1<<m) })
	}
	answers.Wait()
	l.wantEmpty(t)
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
	l, q := New[string](nil), &Question{Keys: []string{"a", "b"}, Creates: true}
	func() {
		defer func() { _ = recover() }()
		l.Send(q, five, func(quorum.Set) { panic("defect") })
	}()
	l.Settle(q, five)
	l.Send(&Question{Keys: []string{"b", "a"}, Creates: true}, five, func(free quorum.Set) {
		if free != five {
			t.Errorf("%05b are asked", free)
		}
	})
}
