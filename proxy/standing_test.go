package proxy

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/metrics"
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

// gathered is one metric's series as text.
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

// What comes back with every redial is told once while a master is away, and an
// absence is counted once, whatever its reasons are.
func TestStandingIsToldOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	observer := newStandingLog(m, slog.New(slog.NewTextHandler(&log, nil)))
	lines := func() int { return strings.Count(log.String(), "a lock master is away") }
	away := func(reasons ...string) {
		for _, reason := range reasons {
			observer.Standing(redlock.MasterStatus{Name: "m1:1", State: redlock.Away, Reason: reason})
		}
	}
	away("refused", "i/o timeout", "refused", "i/o timeout")
	if n := lines(); n != 2 {
		t.Errorf("two reasons are told in %d lines:\n%s", n, log.String())
	}
	observer.Standing(redlock.MasterStatus{Name: "m1:1", State: redlock.Certified})
	if away("refused"); lines() != 3 {
		t.Errorf("the next absence is not told:\n%s", log.String())
	}
	for i := range 2 * maxReasons {
		away(strconv.Itoa(i))
	}
	if n := lines(); n != 2+maxReasons {
		t.Errorf("reasons without end are told in %d lines", n)
	}
	if got := gathered(t, reg, "redlock_master_state_changes_total"); !strings.Contains(got, `value:"away"} counter:{value:2 `) {
		t.Errorf("two absences are counted as %s", got)
	}
}

// A start tells of no master that it does not vote yet. Where that lasts, it does.
func TestAMasterThatIsJustReachedIsNotTold(t *testing.T) {
	for name, lasts := range map[string]bool{"it votes soon": false, "it lasts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := newMetrics(prometheus.NewRegistry())
				if err != nil {
					t.Fatal(err)
				}
				var log lockedBuffer
				observer := newStandingLog(m, slog.New(slog.NewTextHandler(&log, nil)))
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
				const line = `level=WARN msg="a lock master answers and does not vote" master=m1:1 state=uncertified reason="its clock is being watched first"`
				if told := strings.Count(log.String(), "does not vote"); told > 1 || strings.Contains(log.String(), line) != lasts {
					t.Errorf("%s", log.String())
				}
			})
		})
	}
}

func TestReadiness(t *testing.T) {
	enough := testStatus
	enough.Needed = 2
	unborn := redlock.Status{Needed: 1, Reason: "a new set begins only when all have been up for 30s: m1:1 has been up for 3s only",
		Masters: []redlock.MasterStatus{{Name: "m1:1", State: redlock.Uncertified, Reason: "no set of masters is known yet"}}}
	all := redlock.Status{Needed: 1, Masters: testStatus.Masters[:1]}
	const missing = "\nm2:1 is quarantined until 2026-11-21T05:10:00Z: it may have forgotten locks\n" +
		"m3:1 is away: it is not connected: connection refused\n" +
		"m4:1 is barred: it belongs\r\nto another set"
	for _, row := range []struct {
		draining bool
		status   redlock.Status
		ready    bool
		want     string
	}{
		{false, enough, true, "ready: 2 of 5 lock masters vote, 2 needed" + missing},
		{true, enough, false, "draining: the proxy is ending and takes no new clients"},
		{false, testStatus, false, "2 of 5 lock masters vote, 3 needed" + missing},
		{false, unborn, false, "0 of 1 lock masters vote, 1 needed\n" + unborn.Reason + "\nm1:1 is uncertified: no set of masters is known yet"},
		{false, all, true, "ready: 1 of 1 lock masters vote, 1 needed"},
	} {
		if got := judgeReadiness(row.draining, row.status); got != (readiness{row.ready, row.want}) {
			t.Errorf("got  %v\nwant %v %s", got, row.ready, row.want)
		}
	}
	if got := infoOfMaster(testStatus.Masters[1]); got != "name=m2:1,state=quarantined,until=2026-11-21T05:10:00Z,reason=it may have forgotten locks" {
		t.Errorf("%q", got)
	}
	if got := infoOfMaster(testStatus.Masters[3]); got != "name=m4:1,state=barred,reason=it belongs  to another set" {
		t.Errorf("%q", got)
	}
}

// Every state is a series of its own, so that a dashboard needs no numbers, and
// each change is counted and logged with its reason.
func TestStandingIsShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	if err := reg.Register(standingCollector{func() redlock.Status { return testStatus }}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	observer := newStandingLog(m, slog.New(slog.NewTextHandler(&log, nil)))
	var _ redlock.Observer = observer
	for _, state := range []redlock.MasterState{redlock.Certified, redlock.Uncertified} {
		observer.Standing(redlock.MasterStatus{Name: "m0:1", State: state, Reason: "for the test"})
	}
	for _, master := range testStatus.Masters {
		observer.Standing(master)
	}
	m.LockWithoutTTL()
	m.LockBeyondQuarantine()
	m.ShowHazards([]metrics.Hazard{{Kind: "away", Server: "m3:1"}, {Kind: "rights", Server: "m4:1", Detail: "eval"}})
	m.ShowHazards([]metrics.Hazard{{Kind: "rights", Server: "m4:1", Detail: "eval"}})
	_, body := fetch(t, "http://"+startTestAdmin(t, reg, func() readiness { return readiness{ready: true} })+"/metrics")
	for _, want := range []string{
		`redlock_master_state{master="m1:1",state="certified"} 1`,
		`redlock_master_state{master="m1:1",state="away"} 0`,
		`redlock_master_state{master="m2:1",state="quarantined"} 1`,
		`redlock_master_quarantine_end_timestamp_seconds{master="m2:1"} 1.7952378e+09`,
		`redlock_master_longest_ttl_seconds{master="m1:1"} 90`,
		`redlock_master_state_changes_total{master="m3:1",state="away"} 1`,
		`redlock_masters_needed 3`, `redlock_masters_configured 5`, `redlock_set_epoch 2`, `redlock_ready 0`,
		`redlock_locks_without_ttl_total 1`, `redlock_locks_beyond_quarantine_total 1`,
		`redlock_hazards{detail="eval",kind="rights",server="m4:1"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(body, `kind="away"`) || strings.Contains(body, `end_timestamp_seconds{master="m1:1"}`) {
		t.Error("what is over is still shown")
	}
	for _, want := range []string{
		`level=WARN msg="a lock master answers and does not vote" master=m0:1`,
		`level=INFO msg="a lock master votes" master=m1:1 state=certified`,
		`level=WARN msg="a lock master is in quarantine: it is asked everything and its votes do not count" master=m2:1 state=quarantined reason="it may have forgotten locks" until=2026-11-21T05:10:00Z`,
		`level=WARN msg="a lock master is away: locks do without it, and releases wait for it" master=m3:1 state=away reason="it is not connected: connection refused"`,
		`level=WARN msg="a lock master must not vote" master=m4:1 state=barred`,
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
