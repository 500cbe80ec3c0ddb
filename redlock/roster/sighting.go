package roster

import (
	"time"

	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/quorum"
)

// This file decides whether this process knows who the masters are, so that it may tell a master
// that has forgotten it (joining.go).

// A sighting is when this process last asked a member for its marker and found it in order.
type sighting struct {
	joined string
	at     time.Time
}

// sees records a sighting. A reading that was asked for before a clock jumped is none: this process
// may have stood still since then.
func (r *Roster) sees(p Place, s *view) {
	if r.remembers(p.Master, s.run) && p.DB == 0 && s.asked.After(r.shaken) {
		m := r.of(p.Master)
		m.sighting, m.outdated = sighting{r.joined.Who(p.Master), s.asked}, false
	}
}

// hasMet tells whether this process has ever found the present member at a place in order.
func (r *Roster) hasMet(master int) bool { return r.of(master).sighting.joined == r.joined.Who(master) }

// hasSeen tells whether this process has read the member's record so lately that the master
// can have recorded no join since then whose server votes. For a process whose clock stood still,
// lately may be long ago. Another master that remembers shows that: its clock has jumped.
func (r *Roster) hasSeen(p Place, now time.Time) bool {
	// rule: a process that has just seen a master knows what it had on record
	w := r.of(p.Master).sighting
	return r.hasMet(p.Master) && w.at.After(r.shaken) && ago(w.at, now) <= r.limits.SightingLasts() &&
		r.rememberingSince(p, r.views[p].since) > 0
}

// losesSight tells whether a sighting is about to end. A process that waits longer may not
// write any more.
func (r *Roster) losesSight(p Place, now time.Time) bool {
	return r.hasSeen(p, now) && !r.hasSeen(p, now.Add(BeatPause))
}

// knowsMembers tells whether this process may tell a member that has forgotten it who the masters
// are.
func (r *Roster) knowsMembers(p Place, s *view, now time.Time) bool {
	return r.rememberingSince(p, s.since) >= min(r.masters-1, quorum.Size(r.masters)) ||
		r.readAllOthers(p, s.since) || r.hasSeen(p, now)
}

// readAllOthers tells whether all other masters were read after since, also one that may count for
// other processes already.
func (r *Roster) readAllOthers(p Place, since time.Time) bool {
	for i := range r.joined {
		if i == p.Master || i >= r.masters && r.joined.Stage(i).Step != members.Entering {
			continue
		}
		if s := r.views[Place{i, 0}]; s == nil || !s.tellsAfter(since) {
			return false
		}
	}
	return true
}

// rememberingSince counts the other masters that remember, and were asked after since.
func (r *Roster) rememberingSince(p Place, since time.Time) int {
	return r.count(func(i int, s *view) bool {
		return i != p.Master && r.remembers(i, s.run) && s.asked.After(since)
	})
}
