package roster

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// These tests check what people are told about the state of masters.

// A database that is used for the first time is being dialled at first. That is not reported. The
// result is, with the number of the database.
func TestRosterTheFirstUseOfADatabaseIsNoNews(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(3, now)
	var told []MasterStatus
	hear := func() {
		for _, n := range r.Drain().Notices {
			told = append(told, *n.Standing)
		}
	}
	hear()
	told = nil
	for i := range 3 {
		r.Connected(Place{i, 15}, r.names(i), "", Replication{}, now)
		r.Noted(Place{i, 0}, Standing{State: Certified}, now)
	}
	r.Noted(Place{0, 15}, Standing{State: Certified}, now)
	r.Tick(now, rosterLimits)
	if hear(); len(told) > 0 || !r.Status(now).Ready() {
		t.Errorf("told at the first use: %+v, ready: %v", told, r.Status(now).Ready())
	}
	r.Disconnected(Place{1, 15}, NotConnected+": why", now)
	r.Noted(Place{0, 15}, Standing{State: Quarantined, Reason: "x"}, now)
	if hear(); len(told) != 2 || told[0].Reason != "in database 15: it is not connected: why" || told[1].Reason != "in database 15: x" {
		t.Errorf("told of what lasts: %+v", told)
	}
}

// A process that stood still has unread answers, which say nothing about its masters. A place that
// leaves questions unanswered for a whole beat is unreachable.
func TestRosterAMasterIsSilentForAWholeBeat(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(3, now)
	p := Place{0, 0}
	for i, row := range []struct {
		unanswered, late bool
		after            time.Duration // time since the last beat
		want             bool
	}{
		{true, false, 0, false},
		{true, false, BeatLength, true},
		{true, true, time.Minute, false}, // after a standstill the time starts anew
		{true, false, time.Millisecond, false},
		{false, false, BeatLength, false},
		{true, false, BeatLength, false},
		{true, false, 2 * BeatLength, true},
	} {
		now = now.Add(row.after)
		if got := r.Silent(p, row.unanswered, row.late, now); got != row.want {
			t.Errorf("beat %d: %v", i+1, got)
		}
	}
}

// What happens to a whole server is on record in the databases that one script can write to. So no
// other database may hold a lock, nor does it get a marker.
func TestRosterDatabasesBeyondTheScriptsReachHoldNoLocks(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(3, now)
	for db, want := range map[int]string{
		marker.Databases - 1: "its marker is missing",
		marker.Databases:     "only databases 0 to 1023 can hold locks",
	} {
		p := Place{1, db}
		r.Connected(p, r.names(1), "", Replication{}, now)
		if st, _ := r.Checked(p, "", false, now, now); st.State == Certified || st.Reason != want {
			t.Errorf("database %d is %v: %s", db, st.State, st.Reason)
		}
	}
	later := now.Add(recently)
	for i := range 3 {
		r.Asked(Place{i, 0}, later, 0)
	}
	for p, s := range r.views {
		if p.DB != 0 {
			s.asked = later // and its marker is missing still
		}
	}
	if writes := r.Tick(later, rosterLimits); len(writes) != 1 || writes[0].DB != marker.Databases-1 {
		t.Errorf("markers are written: %+v", writes)
	}
}

// A client that asks for a lock in such a database does not make the masters unready for all others.
func TestRosterADatabaseThatHoldsNoLocksDoesNotCountForReadiness(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(3, now)
	for i := range 3 {
		p := Place{i, marker.Databases}
		r.Connected(p, r.names(i), "", Replication{}, now)
		st, _ := r.Checked(p, "", false, now, now)
		r.Noted(p, st, now)
	}
	if is := r.Status(now); !is.Ready() || r.CertifiedIn(marker.Databases) != 0 {
		t.Errorf("%+v, and masters %v vote there", is, r.CertifiedIn(marker.Databases))
	}
}
