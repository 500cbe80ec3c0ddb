package redlock

import (
	"testing"
	"time"
)

// promotionOf is a set of n masters of which the first moves, as two processes
// see it: one still reaches the server of before, the other the promoted one.
func promotionOf(n int, now time.Time) (before, after *roster) {
	for _, r := range []**roster{&before, &after} {
		*r = certifiedRoster(n, now)
		(*r).servers[0].moves = true
	}
	for _, db := range []int{0, 3} {
		p := place{0, db}
		marker := after.sights[p].text
		after.connected(p, "promoted", "", replication{}, now)
		after.shows(p, marker)
	}
	return before, after
}

// write has a roster's marks made, as the masters would show them afterwards.
func (r *roster) write(marks []mark, readers ...*roster) {
	for _, m := range marks {
		if m.write.since == sinceNow {
			m.write.since, m.write.turned = 1, 1
		}
		for _, reader := range readers {
			for _, db := range reader.databases() {
				p := place{m.master, db}
				m.write.db = db
				if reader.sights[p].run == r.sights[m.place].run {
					reader.shows(p, m.write.String())
				}
			}
		}
	}
}

// A promoted server is given no marker before the other masters have heard of
// it, and from then on the server of before does not vote, whoever reaches it.
func TestPromotionTakesTheVoteFromTheServerOfBefore(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 7} {
		now := time.Now()
		limits := voteLimits{RestartDelay: 30 * time.Second, MaxQuarantine: time.Hour, MasterTimeout: time.Second}
		before, after := promotionOf(n, now)
		first := after.plan(now.Add(time.Minute), limits)
		for _, m := range first {
			if m.master == 0 {
				t.Fatalf("of %d: the promoted server gets a marker before anybody has heard of it", n)
			}
		}
		second := after.plan(now.Add(2*time.Minute), limits)
		enough := min(n-1, n-majority(n)+1)
		told := 0
		for _, m := range second {
			switch {
			case m.master == 0:
				t.Fatalf("of %d: the promoted server gets a marker when %d others have heard of it", n, told)
			case m.db == 0 && told < enough:
				after.write([]mark{m}, before, after)
				told++
			}
		}
		if told != enough {
			t.Fatalf("of %d: %d are told, want %d", n, told, enough)
		}
		if state := before.lookAgain(place{0, 0}); state != Barred {
			t.Errorf("of %d: the server of before is %v, want barred", n, state)
		}
		var given []mark
		for _, m := range after.plan(now.Add(3*time.Minute), limits) {
			if m.master == 0 {
				given = append(given, m)
				after.write([]mark{m}, before, after)
			}
		}
		if want := limits.RestartDelay + 3*time.Second; len(given) != 1 || given[0].kind != markAll || given[0].write.quarantine != want {
			t.Errorf("of %d: the promoted server is given %+v, want a quarantine of %v in all databases", n, given, want)
		}
		if state := after.lookAgain(place{0, 0}); state != Certified { // but for the time
			t.Errorf("of %d: the promoted server is %v, want certified", n, state)
		}
		before.plan(now.Add(4*time.Minute), limits)
		if joined := before.joined[0]; joined != after.joined[0] {
			t.Errorf("of %d: the process with the server of before has %q on record, want %q", n, joined, after.joined[0])
		}
	}
}

// A database that is used for the first time has no marker, and that is no
// promotion. Nor is a server known to be its member before database 0 says so.
func TestPromotionIsToldByDatabase0(t *testing.T) {
	now := time.Now()
	limits := voteLimits{RestartDelay: time.Second, MaxQuarantine: time.Minute}
	r := certifiedRoster(3, now)
	r.servers[0].moves = true
	p := place{0, 7}
	r.connected(p, r.sights[place{0, 0}].run, "", replication{}, now)
	r.shows(p, "")
	r.plan(now.Add(time.Minute), limits)
	if r.epoch != 1 {
		t.Errorf("the first use of a database is taken for a promotion: %q", r.joined)
	}
	r.connected(p, "promoted", "", replication{}, now)
	r.shows(p, "")
	for _, m := range r.plan(now.Add(2*time.Minute), limits) {
		if m.place == p {
			t.Errorf("database 7 of a server that nobody knows gets the marker %v", m.write)
		}
	}
}

// Two processes that see the same promotion mean the same.
func TestPromotionIsTheSameToEveryProcess(t *testing.T) {
	now := time.Now()
	_, one := promotionOf(3, now)
	_, other := promotionOf(3, now)
	one.plan(now.Add(time.Minute), voteLimits{})
	other.plan(now.Add(time.Minute), voteLimits{})
	if one.joined[0] != other.joined[0] || one.epoch != 2 || other.epoch != 2 {
		t.Errorf("epoch %d with %q, and epoch %d with %q", one.epoch, one.joined[0], other.epoch, other.joined[0])
	}
}
