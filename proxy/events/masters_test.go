package events

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock"
)

// tally is the Meter behind a Journal.
type tally struct {
	redlock.Observer
	votes, forgotten int
	standings        []string
	gone             []string
}

func (c *tally) Voted(string, redlock.Vote, time.Duration, time.Time) { c.votes++ }
func (c *tally) Standing(s redlock.MasterStatus)                      { c.standings = append(c.standings, s.State.String()) }
func (c *tally) Forgot(string, redlock.Amnesia)                       { c.forgotten++ }
func (c *tally) ForgetMaster(name string)                             { c.gone = append(c.gone, name) }

// A told is a Journal that sees one master.
type told struct {
	*Journal
	tally
	log      proxytest.Log
	observer redlock.Observer
	now      redlock.MasterStatus
}

func newTold() *told {
	w := new(told)
	w.Journal = New(slog.New(slog.NewTextHandler(&w.log, nil)))
	w.observer = w.Journal.Observer(&w.tally)
	return w
}

func (w *told) status() redlock.Status {
	return redlock.Status{Needed: 2, Masters: []redlock.MasterStatus{w.now}}
}

// turn gives the master another state, which is seen at once.
func (w *told) turn(state redlock.MasterState, reason string) {
	w.now = redlock.MasterStatus{Name: "m1", State: state, Reason: reason}
	w.see(w.status(), time.Now())
}

// passes lets time pass while the masters are watched.
func (w *told) passes(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.Watch(ctx, w.status)
}

// An absence that lasts is logged once, with its reason then, whatever reasons follow. One that does not last is not
// logged. Each is counted, once.
func TestAnAbsenceIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTold()
		w.turn(redlock.Voting, "")
		for _, row := range []struct {
			what    string
			lasts   time.Duration // with each reason
			reasons []string
			want    string
		}{
			{"reasons that last", 2 * awayPause, []string{"refused", "timeout", "refused", "timeout"}, "refused"},
			{"a killed master", awayPause / 2, []string{"closed", "refused", "refused", "refused"}, "refused"},
			{"a broken connection", awayPause / 2, []string{"closed"}, ""},
			{"a broken connection, and another one", awayPause / 2, []string{"refused"}, ""},
		} {
			before := len(w.log.String())
			for _, reason := range row.reasons {
				w.turn(redlock.Unreachable, reason)
				w.passes(t, row.lasts)
			}
			w.turn(redlock.Voting, "")
			got, want := w.log.String()[before:], `level=WARN msg="lock master unreachable; releases for it are queued (deploy/INCIDENTS.md#unreachable)" master=m1 state=unreachable reason=`+row.want+"\n"
			if n := strings.Count(got, "level=WARN"); row.want == "" && n != 0 || row.want != "" && (n != 1 || !strings.Contains(got, want)) {
				t.Errorf("%s: the log is\n%s", row.what, got)
			}
		}
		if n := strings.Count(strings.Join(w.standings, " "), "unreachable"); n != 4 {
			t.Errorf("four absences are counted as %d", n)
		}
	})
}

// A master that is reached and lost again in turn is logged, once.
func TestAMasterThatFlapsIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTold()
		w.turn(redlock.Voting, "")
		for range 60 {
			w.turn(redlock.Unreachable, "closed")
			w.passes(t, awayPause/2)
			w.turn(redlock.Starting, "its clock is being watched first")
			w.passes(t, awayPause/2)
		}
		for _, state := range []string{"state=unreachable", "state=starting"} {
			if strings.Count(w.log.String(), state) != 1 {
				t.Errorf("%s is not there once:\n%s", state, w.log.String())
			}
		}
	})
}

// A state that comes again before the master has voted is logged again.
func TestASecondQuarantineIsLogged(t *testing.T) {
	w := newTold()
	w.turn(redlock.Quarantined, "it was restarted")
	w.turn(redlock.Rejected, "it is a replica")
	w.turn(redlock.Quarantined, "it was restarted again")
	if n := strings.Count(w.log.String(), "state=quarantined"); n != 2 {
		t.Errorf("two quarantines are in %d lines:\n%s", n, w.log.String())
	}
}

// A change that an Observer is told is seen before the next tick.
func TestAToldChangeIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTold()
		w.now = redlock.MasterStatus{Name: "m1", State: redlock.Quarantined}
		w.observer.Standing(w.now)
		w.observer.Standing(w.now) // and does not block
		w.passes(t, watchEvery/2)
		if !slices.Equal(w.standings, []string{"quarantined"}) || !strings.Contains(w.log.String(), "quarantined") {
			t.Errorf("counted as %q, and the log is\n%s", w.standings, w.log.String())
		}
	})
}

// A start does not log that masters do not vote yet, unless that lasts.
func TestAMasterThatIsJustReachedIsNotTold(t *testing.T) {
	for name, lasts := range map[string]bool{"it votes soon": false, "it lasts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTold()
				for _, reason := range []string{"no set of masters is known yet", "its clock is being watched first"} {
					w.turn(redlock.Starting, reason)
					w.passes(t, time.Second)
				}
				if w.log.String() != "" {
					t.Errorf("it is told at once:\n%s", w.log.String())
				}
				if !lasts {
					w.turn(redlock.Voting, "")
				}
				w.passes(t, time.Minute)
				const line = `level=WARN msg="lock master starting: it answers and does not vote yet (deploy/INCIDENTS.md#starting)" master=m1 state=starting reason="its clock is being watched first"`
				if told := strings.Count(w.log.String(), "does not vote yet"); told > 1 || strings.Contains(w.log.String(), line) != lasts {
					t.Errorf("%s", w.log.String())
				}
			})
		})
	}
}

// Nobody tells that a master has stopped to answer. It is logged, counted and an event like any other
// change, once it is seen.
func TestAMasterThatStopsAnsweringIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTold()
		w.turn(redlock.Voting, "")
		w.now = redlock.MasterStatus{Name: "m1", State: redlock.Unreachable, Reason: "it is connected and does not answer"}
		w.passes(t, time.Minute)
		w.now = redlock.MasterStatus{Name: "m1", State: redlock.Voting}
		w.passes(t, time.Minute)
		const line = `level=WARN msg="lock master unreachable; releases for it are queued (deploy/INCIDENTS.md#unreachable)" master=m1 state=unreachable reason="it is connected and does not answer"`
		if strings.Count(w.log.String(), line) != 1 || !slices.Equal(w.standings, []string{"voting", "unreachable", "voting"}) || len(w.Events()) != 2 {
			t.Errorf("it is counted as %q, %d events, and the log is\n%s", w.standings, len(w.Events()), w.log.String())
		}
	})
}

// Each state has its line in the log.
func TestEachStateIsLogged(t *testing.T) {
	w, now := newTold(), time.Now()
	status := testStatus
	status.Masters = append(slices.Clone(testStatus.Masters), redlock.MasterStatus{Name: "m0:1", State: redlock.Starting, Reason: "for the test"})
	w.see(status, now)
	for _, after := range []time.Duration{awayPause, 2 * awayPause, startingPause} {
		w.see(status, now.Add(after))
	}
	for _, want := range []string{
		`level=WARN msg="lock master starting: it answers and does not vote yet (deploy/INCIDENTS.md#starting)" master=m0:1`,
		`level=INFO msg="lock master voting" master=m1:1 state=voting`,
		`level=WARN msg="lock master quarantined: it is asked everything, its votes do not count (deploy/INCIDENTS.md#quarantined)" master=m2:1 state=quarantined reason="it may have forgotten locks" until=2026-11-21T05:10:00Z`,
		`level=WARN msg="lock master unreachable; releases for it are queued (deploy/INCIDENTS.md#unreachable)" master=m3:1 state=unreachable reason="it is not connected: connection refused"`,
		`level=WARN msg="lock master rejected: it must not vote (deploy/INCIDENTS.md#rejected)" master=m4:1 state=rejected`,
	} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("no %s in\n%s", want, w.log.String())
		}
	}
}

// Each change of a state is one event, whatever the reasons. A start is none. The list is
// bounded.
func TestEvents(t *testing.T) {
	w := newTold()
	w.turn(redlock.Starting, "its clock is being watched first")
	w.turn(redlock.Voting, "")
	w.turn(redlock.Unreachable, "refused")
	w.turn(redlock.Unreachable, "i/o timeout")
	w.turn(redlock.Starting, "no marker was read yet")
	w.turn(redlock.Quarantined, "it may have forgotten locks")
	w.observer.Forgot("m1", redlock.Restarted)
	w.observer.Forgot("m2", redlock.Replaced)
	w.see(redlock.Status{Masters: []redlock.MasterStatus{w.now, {Name: "m3", State: redlock.Voting}}}, time.Now())
	w.turn(redlock.Voting, "")
	const want = `state m1 voting
failover m2 it has been a replica of another server, so it may have forgotten locks
quarantine m1 it was restarted, so it may have forgotten locks
state m1 quarantined: it may have forgotten locks
state m1 unreachable: refused
state m1 voting
`
	got := ""
	for _, e := range w.Events() {
		got += e.Kind + " " + e.Master + " " + e.Text + "\n"
	}
	if got != want {
		t.Errorf("the events are\n%s", got)
	}
	if len(w.standings) != 7 || w.forgotten != 2 {
		t.Errorf("passed on: %+v", w.tally)
	}
	for i := range 2 * mostEvents {
		w.NoteReload(strconv.Itoa(i))
	}
	if list := w.Events(); len(list) != mostEvents || list[0].Text != strconv.Itoa(2*mostEvents-1) {
		t.Errorf("%d events, the last is %v", len(list), list[0])
	}
	for cause := redlock.Emptied; cause <= redlock.Replaced; cause++ {
		if causes[cause] == "" {
			t.Errorf("%s has no text", cause)
		}
	}
}

// A server that is no longer a master is forgotten, and the meter hears of it once.
func TestReplacedMastersAreForgotten(t *testing.T) {
	w, status := newTold(), testStatus
	w.observer.Voted("m5:1", redlock.Granted, time.Millisecond, time.Now())
	w.see(status, time.Now())
	if s := w.Masters(status); s.Masters[4].VoteMost != time.Millisecond || s.Masters[4].Since.IsZero() || w.votes != 1 {
		t.Errorf("%+v, %d votes are passed on", s.Masters[4], w.votes)
	}
	status.Masters, status.Others = testStatus.Masters[:3], testStatus.Masters[3:4]
	for range 2 {
		w.see(status, time.Now())
	}
	if !slices.Equal(w.gone, []string{"m5:1"}) || w.masters.known["m5:1"] != nil {
		t.Errorf("gone: %q", w.gone)
	}
}

// Of a state that nobody has seen yet it is not known since when it lasts.
func TestSinceIsOfTheState(t *testing.T) {
	w := newTold()
	w.turn(redlock.Voting, "")
	for state, known := range map[redlock.MasterState]bool{redlock.Voting: true, redlock.Rejected: false} {
		w.now.State = state
		if s := w.Masters(w.status()); s.Masters[0].Since.IsZero() == known || s.Masters[0].State != state {
			t.Errorf("%s since %v", state, s.Masters[0].Since)
		}
	}
}

// A master that is first seen while it is dialled is not unreachable, unless that lasts.
func TestAStartIsNoAbsence(t *testing.T) {
	for name, lasts := range map[string]bool{"it is reached soon": false, "it lasts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTold()
				w.turn(redlock.Unreachable, "it is not connected")
				want := []string{"voting"}
				if lasts {
					w.passes(t, 3*awayPause)
					want = []string{"unreachable", "voting"}
				}
				w.turn(redlock.Voting, "")
				if strings.Contains(w.log.String(), "unreachable") != lasts || len(w.Events()) != 2*len(want)-2 || !slices.Equal(w.standings, want) {
					t.Errorf("%d events, counted as %q, and the log is\n%s", len(w.Events()), w.standings, w.log.String())
				}
			})
		})
	}
}

// Remembering each vote and each command allocates nothing.
func TestCountingDoesNotAllocate(t *testing.T) {
	w := newTold()
	w.observer.Voted("m1", redlock.Granted, time.Millisecond, time.Now())
	if n := testing.AllocsPerRun(100, func() {
		w.observer.Voted("m1", redlock.Granted, time.Millisecond, time.Now())
		w.NoteCommand(redlock.KindAcquire, redlock.Won, time.Now())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
