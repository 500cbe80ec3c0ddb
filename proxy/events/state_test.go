package events

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock"
)

var (
	testUntil  = time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)
	testStatus = redlock.Status{
		Needed: 3, Set: "abc", Epoch: 2,
		Masters: []redlock.MasterStatus{
			{Name: "m1:1", State: redlock.Voting, Longest: 90 * time.Second},
			{Name: "m2:1", State: redlock.Quarantined, Reason: "it may have forgotten locks", Until: testUntil},
			{Name: "m3:1", State: redlock.Unreachable, Reason: "it is not connected: connection refused"},
			{Name: "m4:1", State: redlock.Rejected, Reason: "it belongs\r\nto another set"},
			{Name: "m5:1", State: redlock.Voting},
		},
	}
)

// stateOf is a state of which nothing is remembered, but since when the masters have it.
func stateOf(status redlock.Status) State {
	s := State{Status: status}
	for _, m := range status.Masters {
		s.Masters = append(s.Masters, Master{MasterStatus: m, Since: testUntil.Add(-10 * time.Minute)})
	}
	for _, m := range status.Others {
		s.Others = append(s.Others, Master{MasterStatus: m})
	}
	return s
}

// Readiness is told with each master that does not vote.
func TestLines(t *testing.T) {
	enough := testStatus
	enough.Needed = 2
	unborn := redlock.Status{Needed: 1, Reason: "a new set begins only when all have been up for 30s: m1:1 has been up for 3s only",
		Masters: []redlock.MasterStatus{{Name: "m1:1", State: redlock.Starting, Reason: "no set of masters is known yet"}}}
	all := redlock.Status{Needed: 1, Masters: testStatus.Masters[:1]}
	const missing = "\nm2:1 is quarantined until 2026-11-21T05:10:00Z: it may have forgotten locks (deploy/INCIDENTS.md#quarantined)\n" +
		"m3:1 is unreachable: it is not connected: connection refused (deploy/INCIDENTS.md#unreachable)\n" +
		"m4:1 is rejected: it belongs\r\nto another set (deploy/INCIDENTS.md#rejected)"
	for _, row := range []struct {
		status redlock.Status
		want   string
	}{
		{enough, "2 of 5 lock masters vote, 2 needed" + missing},
		{testStatus, "2 of 5 lock masters vote, 3 needed (deploy/INCIDENTS.md#quorumlost)" + missing},
		{unborn, "0 of 1 lock masters vote, 1 needed (deploy/INCIDENTS.md#quorumlost)\n" + unborn.Reason + "\nm1:1 is starting: no set of masters is known yet (deploy/INCIDENTS.md#starting)"},
		{all, "1 of 1 lock masters vote, 1 needed"},
	} {
		if got := strings.Join(stateOf(row.status).Lines(), "\n"); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
	masters := stateOf(testStatus).Masters
	if got := masters[1].Info(); got != "name=m2:1,state=quarantined,until=2026-11-21T05:10:00Z,reason=it may have forgotten locks" {
		t.Errorf("%q", got)
	}
	if got := masters[3].Info(); got != "name=m4:1,state=rejected,reason=it belongs  to another set" {
		t.Errorf("%q", got)
	}
}

// People are told what to do after a change of the masters, when the next may come, and which servers do not count.
func TestChangesAreTold(t *testing.T) {
	status := redlock.Status{Masters: testStatus.Masters[:3], Others: []redlock.MasterStatus{{Name: "m4:1", State: redlock.Quarantined, Until: testUntil}}}
	const other = "not counted: m4:1 is quarantined until 2026-11-21T05:10:00Z (deploy/INCIDENTS.md#quarantined)"
	for _, row := range []struct {
		next time.Time
		tell bool
		want []string
	}{
		{time.Time{}, false, []string{other}},
		{testUntil, false, []string{"the next change of the lock masters may come at 2026-11-21T05:10:00Z, if all vote then", other}},
		{testUntil, true, []string{"the lock masters were changed: " + redlock.TellAll + "; the next change of the lock masters may come at 2026-11-21T05:10:00Z, if all vote then", other}},
	} {
		status.NextChange, status.TellAll = row.next, row.tell
		if got := stateOf(status).Changes(); !slices.Equal(got, row.want) {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

// The masters that do not vote continue a sentence. Those that do not count come last in a list.
func TestMastersInAList(t *testing.T) {
	if got, want := stateOf(testStatus).Absent(), "; master 2 is quarantined until 05:10:00Z, master 3 is unreachable since 05:00:00Z, master 4 is rejected since 05:00:00Z"; got != want {
		t.Errorf("%q", got)
	}
	if got := stateOf(redlock.Status{Masters: testStatus.Masters[:1]}).Absent(); got != "" {
		t.Errorf("%q", got)
	}
	all := stateOf(redlock.Status{Masters: testStatus.Masters[:2], Others: []redlock.MasterStatus{{Name: "m3:1"}, {Name: "m4:1", Reason: "it comes"}}}).All()
	var reasons []string
	for _, m := range all {
		reasons = append(reasons, m.Reason)
	}
	if want := []string{"", "it may have forgotten locks", "it is not counted", "it is not counted: it comes"}; !slices.Equal(reasons, want) {
		t.Errorf("%q", reasons)
	}
}
