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

// A told is a Journal that hears of one master, and is watched.
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

func (w *told) tell(state redlock.MasterState, reason string) {
	w.now = redlock.MasterStatus{Name: "m1", State: state, Reason: reason}
	w.observer.Standing(w.now)
}

// passes lets time pass while the masters are watched.
func (w *told) passes(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w.Watch(ctx, func() redlock.Status { return redlock.Status{Needed: 2, Masters: []redlock.MasterStatus{w.now}} })
}

// While a master is unreachable, a reason that returns with every redial is logged once, and a
// reason of the first moment is not. The change of state is counted once, whatever the reasons.
func TestStandingIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen := newTold(), 0
		away := func(lasts time.Duration, reasons ...string) {
			for _, reason := range reasons {
				w.tell(redlock.Unreachable, reason)
				w.passes(t, lasts)
			}
		}
		back := func() { w.tell(redlock.Voting, "") }
		tells := func(what string, reasons ...string) {
			t.Helper()
			var got []string
			for line := range strings.Lines(w.log.String()) {
				if _, reason, ok := strings.Cut(strings.TrimSpace(line), "state=unreachable reason="); ok {
					got = append(got, reason)
				}
			}
			if got = got[min(seen, len(got)):]; !slices.Equal(got, reasons) {
				t.Errorf("%s: %q is told, want %q", what, got, reasons)
			}
			seen += len(got)
		}
		away(2*awayPause, "refused", "timeout", "refused", "timeout")
		tells("two reasons that last", "refused", "timeout")
		back()
		away(0, "closed")
		away(2*awayPause, "refused")
		tells("a killed master", "refused")
		back()
		away(awayPause/4+time.Millisecond, "closed", "refused", "closed", "refused", "closed", "refused", "closed", "refused")
		tells("two reasons in turn", "refused", "closed")
		back()
		away(0, "closed")
		back()
		tells("a broken connection", "closed")
		away(awayPause/2, "refused")
		back()
		away(awayPause/2, "closed")
		tells("a broken connection, and another one", "refused")
		back()
		var many []string
		for i := range 2 * mostReasons {
			many = append(many, strconv.Itoa(i))
		}
		tells("the other one", "closed")
		away(2*awayPause, many...)
		tells("reasons without end", many[:mostReasons]...)
		if n := strings.Count(strings.Join(w.standings, " "), "unreachable"); n != 7 {
			t.Errorf("seven absences are counted as %d", n)
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
					w.tell(redlock.Starting, reason)
					w.passes(t, time.Second)
				}
				if w.log.String() != "" {
					t.Errorf("it is told at once:\n%s", w.log.String())
				}
				if !lasts {
					w.tell(redlock.Voting, "")
				}
				w.passes(t, time.Minute)
				const line = `level=WARN msg="lock master starting: it answers and does not vote yet" master=m1 state=starting reason="its clock is being watched first"`
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
		w.tell(redlock.Voting, "")
		w.now = redlock.MasterStatus{Name: "m1", State: redlock.Unreachable, Reason: "it is connected and does not answer"}
		w.passes(t, time.Minute)
		w.now = redlock.MasterStatus{Name: "m1", State: redlock.Voting}
		w.passes(t, time.Minute)
		const line = `level=WARN msg="lock master unreachable; releases for it are queued" master=m1 state=unreachable reason="it is connected and does not answer"`
		if strings.Count(w.log.String(), line) != 1 || !slices.Equal(w.standings, []string{"voting", "unreachable", "voting"}) || len(w.Events()) != 2 {
			t.Errorf("it is counted as %q, %d events, and the log is\n%s", w.standings, len(w.Events()), w.log.String())
		}
	})
}

// Each state has its line in the log.
func TestEachStateIsLogged(t *testing.T) {
	w := newTold()
	for _, state := range []redlock.MasterState{redlock.Voting, redlock.Starting} {
		w.observer.Standing(redlock.MasterStatus{Name: "m0:1", State: state, Reason: "for the test"})
	}
	for _, master := range testStatus.Masters {
		w.observer.Standing(master)
	}
	w.observer.Standing(redlock.MasterStatus{Name: "m3:1", State: redlock.Voting}) // an absence is logged if it lasts or ends
	for _, want := range []string{
		`level=WARN msg="lock master starting: it answers and does not vote yet" master=m0:1`,
		`level=INFO msg="lock master voting" master=m1:1 state=voting`,
		`level=WARN msg="lock master quarantined: it is asked everything, its votes do not count" master=m2:1 state=quarantined reason="it may have forgotten locks" until=2026-11-21T05:10:00Z`,
		`level=WARN msg="lock master unreachable; releases for it are queued" master=m3:1 state=unreachable reason="it is not connected: connection refused"`,
		`level=WARN msg="lock master rejected: it must not vote" master=m4:1 state=rejected`,
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
	w.tell(redlock.Starting, "its clock is being watched first")
	w.tell(redlock.Voting, "")
	w.tell(redlock.Unreachable, "refused")
	w.tell(redlock.Unreachable, "i/o timeout")
	w.tell(redlock.Starting, "no marker was read yet")
	w.tell(redlock.Quarantined, "it may have forgotten locks")
	w.observer.Forgot("m1", redlock.Restarted)
	w.observer.Forgot("m2", redlock.Replaced)
	w.observer.Standing(redlock.MasterStatus{Name: "m3", State: redlock.Voting})
	w.tell(redlock.Voting, "")
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
	if n := w.Changes(); n != 9 { // of seven states, and two that forgot
		t.Errorf("%d changes are counted", n)
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
	look := func() State { return w.Masters(func() redlock.Status { return status }) }
	w.observer.Voted("m5:1", redlock.Granted, time.Millisecond, time.Now())
	if s := look(); s.Masters[4].VoteMost != time.Millisecond || s.Masters[4].Since.IsZero() || w.votes != 1 {
		t.Errorf("%+v, %d votes are passed on", s.Masters[4], w.votes)
	}
	status.Masters, status.Others = testStatus.Masters[:3], testStatus.Masters[3:4]
	look()
	if look(); !slices.Equal(w.gone, []string{"m5:1"}) || w.masters.known["m5:1"] != nil {
		t.Errorf("gone: %q", w.gone)
	}
}

// A status that was read before a state was told does not contradict it.
func TestAnOldStatusChangesNothing(t *testing.T) {
	w := newTold()
	w.Masters(func() redlock.Status {
		w.tell(redlock.Voting, "")
		return redlock.Status{Masters: []redlock.MasterStatus{{Name: "m1", State: redlock.Unreachable}}}
	})
	if !slices.Equal(w.standings, []string{"voting"}) {
		t.Errorf("%q", w.standings)
	}
}

// A master that is just being dialled is not told as unreachable, also if somebody looks meanwhile.
func TestAStartIsNoAbsence(t *testing.T) {
	w := newTold()
	w.Masters(func() redlock.Status {
		return redlock.Status{Masters: []redlock.MasterStatus{{Name: "m1", State: redlock.Unreachable, Reason: "it is not connected"}}}
	})
	w.tell(redlock.Voting, "")
	if strings.Contains(w.log.String(), "unreachable") || len(w.Events()) > 0 || !slices.Equal(w.standings, []string{"voting"}) {
		t.Errorf("%d events, counted as %q, and the log is\n%s", len(w.Events()), w.standings, w.log.String())
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
