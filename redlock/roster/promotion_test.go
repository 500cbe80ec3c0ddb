package roster

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
)

// promotionOf returns a set of n masters, of which the first moves, as two processes see it. One
// still reaches the old server, the other the promoted one.
func promotionOf(n int, now time.Time) (before, after *Roster) {
	for _, r := range []**Roster{&before, &after} {
		*r = votingRoster(n, now)
		(*r).servers[0].Moves = true
	}
	for _, db := range []int{0, 3} {
		p := Place{0, db}
		marker := after.views[p].text
		after.Step(Connected{Place: p, Run: "promoted"}, now)
		after.shows(p, marker)
	}
	return before, after
}

// write makes a roster's writes, as the masters would show them afterwards.
func (r *Roster) write(marks []Write, readers ...*Roster) {
	for _, m := range marks {
		if m.Marker.Since == marker.SinceNow {
			m.Marker.Since, m.Marker.Turned = 1, 1
		}
		for _, reader := range readers {
			for _, db := range reader.dbs {
				p := Place{m.Master, db}
				m.Marker.DB = db
				if reader.views[p].run == r.views[m.Place].run {
					reader.shows(p, m.Marker.String())
				}
			}
		}
	}
}

// A promoted server gets no marker before the other masters have recorded it. From then on the old
// server does not vote, whichever process reaches it.
func TestPromotionTakesTheVoteFromTheServerOfBefore(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 7} {
		now := time.Now()
		limits := Limits{RestartDelay: 30 * time.Second, MaxQuarantine: time.Hour, MasterTimeout: time.Second}
		before, after := promotionOf(n, now)
		first := after.Tick(now.Add(time.Minute), limits)
		for _, m := range first {
			if m.Master == 0 {
				t.Fatalf("of %d: the promoted server gets a marker before anybody has heard of it", n)
			}
		}
		second := after.Tick(now.Add(2*time.Minute), limits)
		enough := min(n-1, n-quorum.Size(n)+1)
		told := 0
		for _, m := range second {
			switch {
			case m.Master == 0:
				t.Fatalf("of %d: the promoted server gets a marker when %d others have heard of it", n, told)
			case m.DB == 0 && told < enough:
				after.write([]Write{m}, before, after)
				told++
			}
		}
		if told != enough {
			t.Fatalf("of %d: %d are told, want %d", n, told, enough)
		}
		if state := before.lookAgain(Place{0, 0}); state != Rejected {
			t.Errorf("of %d: the server of before is %v, want rejected", n, state)
		}
		var given []Write
		for _, m := range after.Tick(now.Add(3*time.Minute), limits) {
			if m.Master == 0 {
				given = append(given, m)
				after.write([]Write{m}, before, after)
			}
		}
		if want := limits.MaxQuarantine; len(given) != 1 || given[0].Kind != WriteAll || given[0].Marker.Quarantine != want {
			t.Errorf("of %d: the promoted server is given %+v, want a quarantine of %v in all databases", n, given, want)
		}
		if state := after.lookAgain(Place{0, 0}); state != Voting { // apart from the time
			t.Errorf("of %d: the promoted server is %v, want voting", n, state)
		}
		before.Tick(now.Add(4*time.Minute), limits)
		if joined := before.joined[0]; joined != after.joined[0] {
			t.Errorf("of %d: the process with the server of before has %q on record, want %q", n, joined, after.joined[0])
		}
	}
}

// A database that is used for the first time has no marker, and that is no
// promotion. Nor is a server known to be its member before database 0 says so.
func TestPromotionIsToldByDatabase0(t *testing.T) {
	now := time.Now()
	limits := Limits{RestartDelay: time.Second, MaxQuarantine: time.Minute}
	r := votingRoster(3, now)
	r.servers[0].Moves = true
	p := Place{0, 7}
	r.Step(Connected{Place: p, Run: r.views[Place{0, 0}].run}, now)
	r.shows(p, "")
	r.Tick(now.Add(time.Minute), limits)
	if r.epoch != 1 {
		t.Errorf("the first use of a database is taken for a promotion: %q", r.joined)
	}
	r.Step(Connected{Place: p, Run: "promoted"}, now)
	r.shows(p, "")
	for _, m := range r.Tick(now.Add(2*time.Minute), limits) {
		if m.Place == p {
			t.Errorf("database 7 of a server that nobody knows gets the marker %v", m.Marker)
		}
	}
}

// Two processes that see the same promotion record the same.
func TestPromotionIsTheSameToEveryProcess(t *testing.T) {
	now := time.Now()
	_, one := promotionOf(3, now)
	_, other := promotionOf(3, now)
	one.Tick(now.Add(time.Minute), Limits{})
	other.Tick(now.Add(time.Minute), Limits{})
	if one.joined[0] != other.joined[0] || one.epoch != 2 || other.epoch != 2 {
		t.Errorf("epoch %d with %q, and epoch %d with %q", one.epoch, one.joined[0], other.epoch, other.joined[0])
	}
}
