package roster

import (
	"testing"
	"time"
)

// What people are told of how masters stand, and what they are spared.

// A database that is used for the first time is being dialled at first. That is
// not told, and what comes of it is, with the database's number.
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

// A process that stood still has answers to read, which say nothing of its masters;
// one that leaves questions unanswered for a whole beat is away.
func TestRosterAMasterIsSilentForAWholeBeat(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(3, now)
	p := Place{0, 0}
	for i, row := range []struct {
		unanswered, late bool
		after            time.Duration // the last beat
		want             bool
	}{
		{true, false, 0, false},
		{true, false, BeatLength, true},
		{true, true, time.Minute, false}, // who stood still begins anew
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
