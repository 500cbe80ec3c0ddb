package metrics

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock"
)

var (
	testUntil  = time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)
	testStatus = redlock.Status{
		Needed: 3, Set: "abc", Epoch: 2,
		Masters: []redlock.MasterStatus{
			{Name: "m1:1", State: redlock.Certified, Longest: 90 * time.Second},
			{Name: "m2:1", State: redlock.Quarantined, Reason: "it may have forgotten locks", Until: testUntil},
			{Name: "m3:1", State: redlock.Away, Reason: "it is not connected: connection refused"},
			{Name: "m4:1", State: redlock.Barred, Reason: "it belongs\r\nto another set"},
			{Name: "m5:1", State: redlock.Certified},
		},
	}
)

// gathered returns the series of one metric as text.
func gathered(t *testing.T, reg *prometheus.Registry, name string) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return strings.Join(strings.Fields(family.String()), " ") // which has one space or two, as the build will
		}
	}
	return ""
}

// While a master is unreachable, a reason that returns with every redial is logged once, and a
// reason of the first moment is not. The change of state is counted once, whatever the reasons.
func TestStandingIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m, err := New(reg, Names{Build: []string{"", "", ""}})
		if err != nil {
			t.Fatal(err)
		}
		var log proxytest.Log
		observer := NewMasterLog(m, slog.New(slog.NewTextHandler(&log, nil)))
		told := 0
		away := func(lasts time.Duration, reasons ...string) {
			for _, reason := range reasons {
				observer.Standing(redlock.MasterStatus{Name: "m1:1", State: redlock.Away, Reason: reason})
				time.Sleep(lasts)
			}
			synctest.Wait()
		}
		back := func() { observer.Standing(redlock.MasterStatus{Name: "m1:1", State: redlock.Certified}) }
		tells := func(what string, reasons ...string) {
			t.Helper()
			var got []string
			for line := range strings.Lines(log.String()) {
				if _, reason, ok := strings.Cut(strings.TrimSpace(line), "state=unreachable reason="); ok {
					got = append(got, reason)
				}
			}
			if got = got[min(told, len(got)):]; !slices.Equal(got, reasons) {
				t.Errorf("%s: %q is told, want %q", what, got, reasons)
			}
			told += len(got)
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
		for i := range 2 * maxReasons {
			many = append(many, strconv.Itoa(i))
		}
		tells("the other one", "closed")
		away(2*awayPause, many...)
		tells("reasons without end", many[:maxReasons]...)
		if got := gathered(t, reg, "redlock_master_state_changes_total"); !strings.Contains(got, `value:"unreachable"} counter:{value:7 `) {
			t.Errorf("seven absences are counted as %s", got)
		}
	})
}

// A start does not log that masters do not vote yet, unless that lasts.
func TestAMasterThatIsJustReachedIsNotTold(t *testing.T) {
	for name, lasts := range map[string]bool{"it votes soon": false, "it lasts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := New(prometheus.NewRegistry(), Names{Build: []string{"", "", ""}})
				if err != nil {
					t.Fatal(err)
				}
				var log proxytest.Log
				observer := NewMasterLog(m, slog.New(slog.NewTextHandler(&log, nil)))
				for _, reason := range []string{"no set of masters is known yet", "its clock is being watched first"} {
					observer.Standing(redlock.MasterStatus{Name: "m1:1", State: redlock.Uncertified, Reason: reason})
					time.Sleep(time.Second)
				}
				if log.String() != "" {
					t.Errorf("it is told at once:\n%s", log.String())
				}
				if !lasts {
					observer.Standing(redlock.MasterStatus{Name: "m1:1", State: redlock.Certified})
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				const line = `level=WARN msg="lock master starting: it answers and does not vote yet" master=m1:1 state=starting reason="its clock is being watched first"`
				if told := strings.Count(log.String(), "does not vote yet"); told > 1 || strings.Contains(log.String(), line) != lasts {
					t.Errorf("%s", log.String())
				}
			})
		})
	}
}

// Every state has a series of its own, so a dashboard needs no numbers. Each change is
// counted and logged with its reason.
func TestStandingIsShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := New(reg, Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.Register(Readings{
		Masters:  func() redlock.Status { return testStatus },
		Upstream: func() (up, known bool) { return false, false },
		Moving:   func() []MovingRule { return nil },
		Leases:   func() LeaseCounts { return LeaseCounts{Renewals: map[string]int64{"renewed": 3}} },
		Buffered: func() int64 { return 7 },
		Shared:   func() (int, int) { return 1, 2 },
		Unruled:  func() (int, int64) { return 1, 2 },
	}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	observer := NewMasterLog(m, slog.New(slog.NewTextHandler(&log, nil)))
	var _ redlock.Observer = observer
	for _, state := range []redlock.MasterState{redlock.Certified, redlock.Uncertified} {
		observer.Standing(redlock.MasterStatus{Name: "m0:1", State: state, Reason: "for the test"})
	}
	for _, master := range testStatus.Masters {
		observer.Standing(master)
	}
	observer.Standing(redlock.MasterStatus{Name: "m3:1", State: redlock.Certified}) // an absence is logged if it lasts or ends
	m.LockWithoutTTL()
	m.LockBeyondQuarantine()
	m.ShowHazards([]Hazard{{Kind: "unreachable", Server: "m3:1"}, {Kind: "rights", Server: "m4:1", Detail: "eval"}})
	m.ShowHazards([]Hazard{{Kind: "rights", Server: "m4:1", Detail: "eval"}})
	page := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	body := page.Body.String()
	for _, want := range []string{
		`redlock_master_state{master="m1:1",state="voting"} 1`,
		`redlock_master_state{master="m1:1",state="unreachable"} 0`,
		`redlock_master_state{master="m2:1",state="quarantined"} 1`,
		`redlock_master_quarantine_end_timestamp_seconds{master="m2:1"} 1.7952378e+09`,
		`redlock_master_longest_ttl_seconds{master="m1:1"} 90`,
		`redlock_master_state_changes_total{master="m3:1",state="unreachable"} 1`,
		`redlock_masters_needed 3`, `redlock_masters_configured 5`, `redlock_set_epoch 2`, `redlock_ready 0`,
		`redlock_locks_without_ttl_total 1`, `redlock_locks_beyond_quarantine_total 1`,
		`redlock_lease_renewals_total{result="renewed"} 3`, `redlock_buffered_bytes 7`, `redlock_shared_clients 2`, `redlock_unruled_uses_total 2`,
		`redlock_hazards{detail="eval",kind="rights",server="m4:1"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, `kind="unreachable"`) || strings.Contains(body, `end_timestamp_seconds{master="m1:1"}`) {
		t.Error("what is over is still shown")
	}
	for _, want := range []string{
		`level=WARN msg="lock master starting: it answers and does not vote yet" master=m0:1`,
		`level=INFO msg="lock master voting" master=m1:1 state=voting`,
		`level=WARN msg="lock master quarantined: it is asked everything, its votes do not count" master=m2:1 state=quarantined reason="it may have forgotten locks" until=2026-11-21T05:10:00Z`,
		`level=WARN msg="lock master unreachable; releases for it are queued" master=m3:1 state=unreachable reason="it is not connected: connection refused"`,
		`level=WARN msg="lock master rejected: it must not vote" master=m4:1 state=rejected`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
	m.Undone("m1:1")
	m.ForgetMaster("m1:1")
	if undone := gathered(t, reg, "redlock_undone_grants_total"); undone != "" {
		t.Errorf("a master that was replaced is still shown: %s", undone)
	}
	m.Undone("m1:1")
	if undone := gathered(t, reg, "redlock_undone_grants_total"); !strings.Contains(undone, "m1:1") {
		t.Errorf("a master that came back is not shown: %s", undone)
	}
}
