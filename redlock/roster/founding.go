package roster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/quorum"
)

// This file finds the set of masters: it takes over an existing set or begins a new one.

// adopt takes over the existing set: the one to which most masters belong, once a quorum was
// reached. A tie, such as two halves of different sets, needs the operator. If a quorum belongs
// to another set than before, that set replaces the present one. The masters have forgotten the
// present one, and the other began in quarantine.
func (r *Roster) adopt(now time.Time) {
	best, tie := r.largest()
	needed := quorum.Size(best.masters)
	if r.set != "" {
		needed = max(needed, quorum.Size(r.masters)) // a smaller set of others does not replace it
	}
	if best.set == "" || best.set == r.set || tie || best.reached < needed || r.set != "" && best.members < needed {
		return
	}
	if r.set != "" {
		before := r.set
		r.tell(Notice{Grave: true, Text: "the lock masters have forgotten their set and belong to another now, which began in quarantine (deploy/INCIDENTS.md#quarantined)", Fields: []any{"set", best.set, "before", before}})
		r.fresh = false // the operator said that about the masters before they forgot
		for i := range r.masters {
			// rule: a server that was replaced stays out of a new set
			r.of(i).outdated = r.isOutdated(i)
		}
		r.recalls = false
		if r.token > 0 { // masters that forgot may have known larger ones, as in tokenLearned
			r.token = max(r.token, marker.FirstToken(now))
		}
		for _, m := range r.all {
			m.met, m.before = "", ""
		}
	}
	first, learned, listed, another := r.joined, r.learned, r.listed, r.set != ""
	r.set, r.reason = best.set, ""
	r.epoch, r.joined, r.masters = 0, best.joined, best.masters
	for _, s := range r.views {
		s.blank = s.blank && !another
		if s.present() && s.marker.Set == r.set {
			r.learn(s, now)
		}
	}
	if !another && slices.Equal(first, r.joined) {
		r.learned = learned // nobody has counted others before
	}
	r.listed = listed // who changed that, and when, is not known here
	r.changed()
}

// isListed tells whether a record can be that of the masters on this process's list. If its number
// was never changed, it has as many places as the list.
func (r *Roster) isListed(joined members.List) bool {
	return joined.IsResized() || len(joined) == r.masters
}

// A following is a set and how many of its masters have its marker. The set's own record says how
// many masters it has, and so which places count.
type following struct {
	set                       string
	joined                    members.List
	masters, members, reached int
}

// largest returns the set to which most masters belong, and whether there are two of them.
func (r *Roster) largest() (best following, tie bool) {
	records := map[string]members.List{}
	for i := range r.servers {
		s := r.views[Place{i, 0}]
		if s != nil && s.present() && s.marker.Member == i+1 && records[s.marker.Set].Fits(s.marker.Joined) {
			records[s.marker.Set] = records[s.marker.Set].Together(s.marker.Joined)
		}
	}
	for set, joined := range records {
		if set != r.set && !r.isListed(joined) {
			continue
		}
		f := following{
			set: set, joined: joined,
			// rule: a set is counted by its own record
			masters: joined.Counting(),
		}
		for i := range f.masters {
			s := r.views[Place{i, 0}]
			if s == nil || !s.read {
				continue
			}
			f.reached++
			if s.present() && s.marker.Set == set && s.marker.Member == i+1 && joined.Fits(s.marker.Joined) {
				f.members++
			}
		}
		switch {
		case best.set == "" || f.members > best.members:
			best, tie = f, false
		case f.members == best.members:
			tie = true
		}
	}
	return best, tie
}

// found begins a new set. All masters must have been reached, and none may have a marker. A new
// set looks like one that forgot everything, by restarts or by FLUSHALL. So it begins in
// quarantine, unless the operator says that no lock can be held yet. If several processes try
// at the same moment, the first master decides between them.
func (r *Roster) found(now time.Time) []Write {
	var waits []string
	runs := map[string]int{}
	for i := range r.masters {
		s := r.views[Place{i, 0}]
		switch {
		case s != nil && s.read && s.problem != "":
			waits = append(waits, r.names(i)+": "+s.problem)
		case s != nil && s.read && s.Replica:
			waits = append(waits, r.names(i)+": "+IsReplica)
		case s == nil || !s.absent():
			waits = append(waits, r.names(i)+" "+r.belonging(i, s))
		}
		if s != nil && s.read && s.run != "" {
			if other, twice := runs[s.run]; twice {
				waits = append(waits, fmt.Sprintf("%s and %s are one and the same server", r.names(other), r.names(i)))
			}
			runs[s.run] = i
		}
	}
	for p, s := range r.views {
		s.blank = len(waits) == 0 && p.DB == 0
	}
	if len(waits) > 0 {
		r.reason = "a new set of lock masters begins only when all of them have been reached and none has a marker: " + strings.Join(waits, "; ")
		return nil
	}
	r.reason = "a new set of lock masters is being formed"
	r.witnessed, r.recalls = true, true // no TTL was granted in it yet
	m := Write{Place: Place{0, 0}, Marker: r.marker(Place{0, 0}, "", 0, now)}
	r.begin(&m)
	r.nonce++
	m.Marker.Set = marker.NewSetID(now, m.Marker.Quarantine, r.nonce)
	return []Write{m}
}

func (r *Roster) belonging(i int, s *view) string {
	switch {
	case s != nil && s.connected && !s.read && !s.asked.IsZero():
		return "has not answered lately"
	case s == nil || !s.read:
		return "has not been reached"
	case s.broken:
		return "has a key " + marker.Key + " that this version cannot read"
	case s.marker.Member != i+1 || !r.isListed(s.marker.Joined):
		return fmt.Sprintf("is number %d of %d of set %s, and configured as number %d of %d", s.marker.Member, s.marker.Members, s.marker.Set, i+1, len(r.servers))
	}
	return "belongs to set " + s.marker.Set
}

// firstSlack is the largest difference between the ends of quarantines that began with their
// set.
const firstSlack = 2 * time.Second

// isUnused tells whether all masters are in the quarantine in which the set began. Then no lock
// has been granted in it. A quarantine that began later ends later. The first one may have been
// ended early, and locks may have been granted since.
func (r *Roster) isUnused(now time.Time) bool {
	end := marker.FirstQuarantine(r.set)
	if !now.Before(end) {
		return false
	}
	return r.masters == r.count(func(_ int, s *view) bool {
		isFirst := s.marker.Since == 0 || s.told.State == Quarantined && s.told.Until.Sub(end).Abs() <= firstSlack
		return s.present() && s.marker.Set == r.set && s.marker.Run == s.run && isFirst
	})
}

// newUntil returns when locks can be granted in a set that is in its first quarantine. It
// returns zero if the set is not.
func (r *Roster) newUntil(now time.Time) time.Time {
	needed := quorum.Size(r.masters) - r.are(0, Voting).Len()
	if needed <= 0 || !now.Before(marker.FirstQuarantine(r.set)) {
		return time.Time{}
	}
	var ends []time.Time
	for i := range r.masters {
		if s := r.views[Place{i, 0}]; s != nil && s.told.State == Quarantined {
			ends = append(ends, s.told.Until)
		}
	}
	if len(ends) < needed {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	return shownUntil(ends[needed-1], now)
}

// NewSetNotice is what people should know of masters that form a new set.
func NewSetNotice(until time.Time) string {
	return "new set of masters: locks can be granted from " + until.UTC().Format(time.RFC3339) +
		"; start once with -new if no lock can be held on them yet"
}

// tellNewSet logs NewSetNotice once.
func (r *Roster) tellNewSet(now time.Time) {
	if until := r.newUntil(now); !until.IsZero() && r.newTold != r.set {
		r.newTold = r.set
		r.warn(NewSetNotice(until), "set", r.set)
	}
}
