package events

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redlock-proxy/redlock"
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

// Every state has a series of its own, so a dashboard needs no numbers. Each change is
// counted.
func TestStandingIsShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := NewMetrics(reg, Names{Build: []string{"", "", ""}})
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
	for _, master := range testStatus.Masters {
		m.Standing(master)
	}
	m.LockWithoutTTL()
	m.LockBeyondQuarantine()
	m.ShowHazards([]Hazard{{Kind: "unreachable", Server: "m3:1"}, {Kind: "rights", Server: "m4:1", Detail: "eval"}})
	m.ShowHazards([]Hazard{{Kind: "rights", Server: "m4:1", Detail: "eval"}})
	page := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	body := page.Body.String()
	if strings.Contains(body, `kind="unreachable"`) {
		t.Error("a hazard that is over is shown")
	}
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
