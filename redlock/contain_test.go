package redlock

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/notify"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// A defect is a panic in one of our own functions. It may cost the request or the
// connection that it happens in, and never a key, a master or the process.

const allWell = "ok ok ok ok ok"

// withDefects runs test on a timeline whose log is kept.
func withDefects(t *testing.T, observer Observer, test func(t *testing.T, w *timeline, log *lockedText)) {
	t.Helper()
	var log lockedText
	cfg := timelineConfig()
	cfg.Log, cfg.Observer = slog.New(slog.NewTextHandler(&log, nil)), observer
	onTimelineWith(t, cfg, allWell, func(t *testing.T, w *timeline) { test(t, w, &log) })
}

// mustPanic runs do, which must panic.
func mustPanic(t *testing.T, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		reason := recover()
		if _, isRuntimes := reason.(runtime.Error); !isRuntimes && reason != "defect" {
			t.Errorf("recovered %v", reason)
		}
	}()
	do()
}

// mustServe uses the key in every way that waits for something.
func (w *timeline) mustServe() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*second)
	defer cancel()
	w.sleep(second) // undos arrive, broken connections are dialled anew
	w.wantValues("- - - - -")
	acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenB), TTL: 10 * second}
	if o := w.locker.Acquire(ctx, acquire); o.Verdict != Won {
		w.t.Fatalf("the key cannot be taken any more: %v", o.Verdict)
	}
	if o := w.locker.Extend(ctx, ExtendRequest{Key: []byte(key), TTL: 20 * second}); o.Verdict != Won {
		w.t.Errorf("the key cannot be extended any more: %v", o.Verdict)
	}
	if o := w.locker.Acquire(ctx, acquire); o.Verdict != Lost {
		w.t.Errorf("the key is taken twice: %+v", o)
	}
	if o := w.locker.Release(ctx, ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
		w.t.Errorf("the key cannot be released any more: %v", o.Verdict)
	}
	w.sleep(second)
	w.wantValues("- - - - -")
	if owing := w.locker.Reader().Outstanding(0, []byte(key)); slices.Contains(owing, true) {
		w.t.Errorf("masters owe an answer about the key: %v", owing)
	}
}

// acquiring is an acquire's question, which a test gives a defect.
func (w *timeline) acquiring() ([]byte, ballot.Question[bool]) {
	taken := &acquisition{locker: w.locker, key: [1]string{key}, value: tokenA, ttl: time.Hour}
	return resp.AppendCommand(nil, "SET", key, tokenA, "NX", "PX", "3600000"), ballot.Question[bool]{
		Kind:    KindAcquire,
		Replies: 1,
		Keys:    []string{key},
		Creates: true,
		Parse:   parseSet,
		Vote:    ballot.VoteOf,
		Decide:  ballot.Tallied(quorum.Tally.Acquire),
		Settler: taken,
	}
}

func TestTimelineADefectOnTheRequestsSideCostsNoKey(t *testing.T) {
	defects := map[string]func(q *ballot.Question[bool], frames []byte){
		"the question for a master": func(q *ballot.Question[bool], frames []byte) {
			q.Each = func(i int) []byte {
				if i == 2 {
					panic("defect")
				}
				return frames
			}
		},
		"the verdict": func(q *ballot.Question[bool], _ []byte) {
			q.Decide = func([]quorum.Answer[bool], time.Duration) Verdict { panic("defect") }
		},
		"the verdict at the deadline": func(q *ballot.Question[bool], _ []byte) {
			q.Decide = func(answers []quorum.Answer[bool], elapsed time.Duration) Verdict {
				if elapsed >= timeout {
					panic("defect")
				}
				return Pending
			}
		},
		"what decides whether a ballot stays won": func(q *ballot.Question[bool], _ []byte) {
			q.Keeper = ballot.KeepFunc[bool](func(*ballot.Ballot[bool]) bool { panic("defect") })
		},
	}
	for name, inject := range defects {
		t.Run(name, func(t *testing.T) {
			withDefects(t, nil, func(t *testing.T, w *timeline, _ *lockedText) {
				frames, q := w.acquiring()
				inject(&q, frames)
				mustPanic(t, func() { ballot.Poll(w.locker.box, frames, q) })
				w.mustServe()
			})
		})
	}
}

func TestTimelineADefectOnTheMastersSideEndsOneConnection(t *testing.T) {
	defects := map[string]func(q *ballot.Question[bool], once func()){
		"reading an answer": func(q *ballot.Question[bool], once func()) {
			q.Parse = func(replies [][]byte) (bool, error) { once(); return parseSet(replies) }
		},
		"showing an answer": func(q *ballot.Question[bool], once func()) {
			q.Vote = func(granted bool) Vote { once(); return ballot.VoteOf(granted) }
		},
		"counting an answer": func(q *ballot.Question[bool], once func()) {
			decide := q.Decide
			q.Decide = func(answers []quorum.Answer[bool], elapsed time.Duration) Verdict {
				once()
				return decide(answers, elapsed)
			}
		},
		"reading a guard's answer": func(q *ballot.Question[bool], once func()) {
			q.Guard = &ballot.Guard[bool]{
				Frames:  func(int) []byte { return resp.AppendCommand(nil, "EXISTS", "another") },
				Replies: 1,
				Read:    func([][]byte) (passes, value bool, err error) { once(); return true, false, nil },
				Stopped: func([]quorum.Answer[bool]) bool { return false },
			}
		},
		"undoing a late answer": func(q *ballot.Question[bool], once func()) {
			settler := q.Settler
			q.Settler = ballot.SettleFunc[bool](func(b *ballot.Ballot[bool], i int, a quorum.Answer[bool], verdict Verdict) {
				if b.Answers[i].State == quorum.Awaited {
					defer once()
				}
				settler.Settle(b, i, a, verdict)
			})
		},
	}
	for name, inject := range defects {
		t.Run(name, func(t *testing.T) {
			withDefects(t, nil, func(t *testing.T, w *timeline, log *lockedText) {
				w.play("ok@5ms ok@6ms ok@7ms ok@8ms ok@200ms")
				frames, q := w.acquiring()
				q.Keeper = ballot.KeepFunc[bool](func(*ballot.Ballot[bool]) bool { return false }) // all is undone
				done := false
				inject(&q, func() {
					if !done {
						done = true
						panic("defect")
					}
				})
				b := ballot.Poll(w.locker.box, frames, q)
				if b.Verdict == Pending {
					t.Errorf("the ballot has no verdict")
				}
				w.sleep(second)
				w.play(allWell)
				if !done {
					t.Errorf("nothing was wrong")
				}
				if strings.Count(log.String(), "a defect in the proxy was contained") != 1 {
					t.Errorf("the log does not tell of one defect:\n%s", log.String())
				}
				if up := w.locker.reachable(); up != len(w.masters) {
					t.Errorf("%d masters are reached again", up)
				}
				w.mustServe()
			})
		})
	}
}

func TestTimelineADefectInReadingAnAnswerKeepsTheDebt(t *testing.T) {
	withDefects(t, nil, func(t *testing.T, w *timeline, _ *lockedText) {
		w.put("A A A A A", time.Hour)
		b := ballot.Poll(w.locker.box, resp.AppendCommand(nil, "GET", key), ballot.Question[bool]{
			Kind: KindRelease, Replies: 1, Keys: []string{key},
			Debt:   &stream.Debt{Script: stream.ReleaseScript, Key: key, Value: tokenA, Life: stream.NewLifetime(time.Now().Add(time.Hour))},
			Parse:  func([][]byte) (bool, error) { panic("defect") },
			Vote:   ballot.VoteOf,
			Decide: ballot.Tallied(quorum.Tally.Release),
		})
		if b.Verdict != NoQuorum {
			t.Errorf("%v", b.Verdict)
		}
		w.mustServe()
	})
}

func TestTimelineADefectOfASubscriberCostsOneEvent(t *testing.T) {
	withDefects(t, nil, func(t *testing.T, w *timeline, log *lockedText) {
		var heard []string
		s := w.locker.Subscriber(func(e notify.Event) {
			if string(e.Payload) == "1" {
				panic("defect")
			}
			heard = append(heard, eventWord(e))
		})
		s.Subscribe(t.Context(), "chan")
		for _, payload := range []string{"1", "2"} {
			w.publish(payload, 1, 2, 3)
			w.elapse(second)
		}
		s.Close()
		if got := strings.Join(heard, " "); got != "chan:2" || strings.Count(log.String(), "a defect in the proxy was contained") != 1 {
			t.Errorf("heard %q, and the log is\n%s", got, log.String())
		}
	})
}

func TestTimelineADefectBeforeTheBallotPassesTheTurnOn(t *testing.T) {
	r := RunRequest{Keys: [][]byte{[]byte(key)}, Args: [][]byte{[]byte("HSET"), []byte(key), []byte("f"), []byte("v")}}
	for name, ask := range map[string]func(t *testing.T, l *Locker){
		"acquire": func(t *testing.T, l *Locker) {
			l.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: second})
		},
		"extend": func(t *testing.T, l *Locker) { l.Extend(t.Context(), ExtendRequest{Key: []byte(key), TTL: second}) },
		"run":    func(t *testing.T, l *Locker) { l.Run(t.Context(), r) },
	} {
		t.Run(name, func(t *testing.T) {
			withDefects(t, nil, func(t *testing.T, w *timeline, _ *lockedText) {
				masters := w.locker.box.Masters
				w.locker.box.Masters = nil // so that no ballot begins
				mustPanic(t, func() { ask(t, w.locker) })
				w.locker.box.Masters = masters
				w.mustServe()
			})
		})
	}
}

// A nervous Observer panics at every call once it is armed.
type nervous struct{ armed bool }

func (n *nervous) jump() {
	if n.armed {
		panic("defect")
	}
}

func (n *nervous) Voted(string, Vote, time.Duration, time.Time) { n.jump() }
func (n *nervous) Decided(Kind, Verdict, time.Duration)         { n.jump() }
func (n *nervous) Undone(string)                                { n.jump() }
func (n *nervous) Queued(string, int)                           { n.jump() }
func (n *nervous) Standing(roster.MasterStatus)                 { n.jump() }
func (n *nervous) Forgot(string, roster.Amnesia)                { n.jump() }
func (n *nervous) Healed(string, heal.Deed)                     { n.jump() }
func (n *nervous) HealPassed(time.Time, bool)                   { n.jump() }

func TestTimelineAnObserverThatPanicsCostsNothing(t *testing.T) {
	observer := &nervous{}
	withDefects(t, observer, func(t *testing.T, w *timeline, log *lockedText) {
		observer.armed = true
		w.mustServe()
		w.play("no no no ok ok")
		if o := w.locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Hour}); o.Verdict != Lost {
			t.Errorf("a lock that is held is taken: %v", o.Verdict)
		}
		for _, m := range w.masters[:3] {
			m.Put(key, foreign, time.Millisecond)
		}
		w.mustServe()
		if !strings.Contains(log.String(), "a defect in the proxy was contained") {
			t.Errorf("the log does not tell of it:\n%s", log.String())
		}
	})
}
