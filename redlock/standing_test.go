package redlock

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
		for _, n := range r.news().notices {
			told = append(told, *n.standing)
		}
	}
	hear()
	told = nil
	for i := range 3 {
		r.connected(place{i, 15}, r.names(i), "", replication{}, now)
		r.note(place{i, 0}, standing{state: Certified}, now)
	}
	r.note(place{0, 15}, standing{state: Certified}, now)
	r.plan(now, rosterLimits)
	if hear(); len(told) > 0 || !r.status(now).Ready() {
		t.Errorf("told at the first use: %+v, ready: %v", told, r.status(now).Ready())
	}
	r.disconnected(place{1, 15}, notConnected+": why", now)
	r.note(place{0, 15}, standing{state: Quarantined, reason: "x"}, now)
	if hear(); len(told) != 2 || told[0].Reason != "in database 15: it is not connected: why" || told[1].Reason != "in database 15: x" {
		t.Errorf("told of what lasts: %+v", told)
	}
}

// A process that stood still has answers to read, which say nothing of its masters;
// one that leaves questions unanswered for a whole beat is away.
func TestRosterAMasterIsSilentForAWholeBeat(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(3, now)
	p := place{0, 0}
	for i, row := range []struct {
		unanswered, late bool
		after            time.Duration // the last beat
		want             bool
	}{
		{true, false, 0, false},
		{true, false, beatLength, true},
		{true, true, time.Minute, false}, // who stood still begins anew
		{true, false, time.Millisecond, false},
		{false, false, beatLength, false},
		{true, false, beatLength, false},
		{true, false, 2 * beatLength, true},
	} {
		now = now.Add(row.after)
		if got := r.keepsSilent(p, row.unanswered, row.late, now); got != row.want {
			t.Errorf("beat %d: %v", i+1, got)
		}
	}
}
