package roster

import (
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
)

// This file keeps the state of each place, as the roster was told last, and answers questions
// about it.

// stands records the standing of a place.
func (r *Roster) stands(p Place, s *view, st Standing, now time.Time) {
	if s.told.State != st.State || s.told.Reason != st.Reason {
		r.untold.Turned, r.moved[p.DB] = true, now
	}
	s.told = st
	r.announce(p.Master, now)
}

// announce gives notice of a master's state if it has changed.
func (r *Roster) announce(master int, now time.Time) {
	if is, last := r.statusOf(master, now), r.of(master).shown; is.State != last.State || is.Reason != last.Reason || is.Name != last.Name {
		r.of(master).shown = is
		r.tell(Notice{Standing: &is})
	}
}

// noSetPause is how long the roster waits before it logs that there is no set. Mostly the
// masters are just being reached.
const noSetPause = 2 * time.Second

// A setProblem is a reason why no set begins, since when it holds, and whether it was logged.
type setProblem struct {
	reason string
	since  time.Time
	told   bool
}

// tellNoSet logs each reason why there is no set, once the reason has lasted for noSetPause.
func (r *Roster) tellNoSet(now time.Time) {
	switch {
	case r.set != "" || r.are(0, Voting).Len() >= quorum.Size(r.masters):
	case r.noSet.reason != r.reason:
		r.noSet = setProblem{reason: r.reason, since: now}
	case !r.noSet.told && now.Sub(r.noSet.since) >= noSetPause:
		r.noSet.told = true
		r.warn("no lock can be decided yet, because there is no set of lock masters (deploy/INCIDENTS.md#starting)", "reason", r.reason)
	}
}

// are returns the masters that are in a state in a database.
func (r *Roster) are(db int, state State) (set quorum.Set) {
	for i := range r.masters {
		if s := r.views[Place{i, db}]; s != nil && s.told.State == state {
			set |= 1 << i
		}
	}
	return set
}

// statusOf returns the state of a master in the worst of its databases, and the longest TTL
// granted in any of them.
func (r *Roster) statusOf(master int, now time.Time) MasterStatus {
	worst, found := Standing{State: Voting}, false
	var longest time.Duration
	for _, db := range r.dbs {
		s := r.views[Place{master, db}]
		if s == nil || db >= marker.Databases { // it holds no locks on any master, and clients hear of that
			continue
		}
		longest = max(longest, s.told.Longest)
		if db != 0 && s.told.State == Unreachable && s.told.Reason == "" {
			continue // the database is used for the first time, and is just being dialled
		}
		if !found || rank(s.told.State) > rank(worst.State) {
			worst, found = s.told, true
			if db != 0 && worst.Reason != "" {
				worst.Reason = fmt.Sprintf("in database %d: %s", db, worst.Reason)
			}
		}
	}
	if !found {
		worst = Standing{State: Unreachable, Reason: NotConnected}
		if master >= len(r.servers) {
			worst.Reason = Unlisted
		}
	}
	if worst.State != Quarantined {
		worst.Until = time.Time{}
	}
	return MasterStatus{Name: r.names(master), State: worst.State, Reason: worst.Reason, Until: shownUntil(worst.Until, now), Longest: longest}
}

// rank orders states from best to worst.
func rank(s State) int {
	return slices.Index([]State{Voting, Quarantined, Starting, Unreachable, Rejected}, s)
}

// shownUntil is the end of a quarantine for people. It is the next whole second, because they
// read nothing shorter. It is never in the past: an ended quarantine is about to be noticed.
func shownUntil(until, now time.Time) time.Time {
	if until.IsZero() {
		return until
	}
	if until.Before(now) {
		until = now
	}
	return until.Add(time.Second - 1).Truncate(time.Second)
}

// Status returns what this process knows of all masters, for people.
func (r *Roster) Status(now time.Time) Status {
	status := Status{Needed: quorum.Size(r.masters), Set: r.set, Epoch: r.epoch, Reason: r.reason, Learned: r.learned, NewUntil: r.newUntil(now)}
	if next := r.nextChange(); now.Before(next) {
		status.NextChange = next
		status.TellAll = now.Before(r.listed.Add(next.Sub(r.learned)))
	}
	for i := range r.masters {
		status.Masters = append(status.Masters, r.statusOf(i, now))
	}
	for i := r.masters; i < max(len(r.servers), len(r.joined)); i++ {
		status.Others = append(status.Others, r.statusOf(i, now))
	}
	return status
}

// Prospects are what can be expected of the masters in a database.
type Prospects struct {
	Voting, Quarantined quorum.Set
	Hopeful             quorum.Set // these may vote by some time
	Arriving            quorum.Set // of these nothing has been read yet
	Moved               time.Time  // when the state of one of them last changed
	Until               time.Time  // when the first of those in quarantine votes again
	NewUntil            time.Time  // as in Status
}

// Prospects returns the Prospects of a database. by is the time for Hopeful.
func (r *Roster) Prospects(db int, by, now time.Time) Prospects {
	if r.moved[db].IsZero() {
		r.moved[db] = now
	}
	p := Prospects{Voting: r.are(db, Voting), Quarantined: r.are(db, Quarantined), Moved: r.moved[db], NewUntil: r.newUntil(now)}
	for i := range r.masters {
		s := r.views[Place{i, db}]
		if s == nil || s.connected && !s.read {
			p.Arriving |= 1 << i
		}
		if s == nil || s.told.State != Rejected && !s.told.Until.After(by) {
			p.Hopeful |= 1 << i // an unreachable one may be back in a moment; a stream that has dialled in vain knows better
		}
		if p.Quarantined.Has(i) && (p.Until.IsZero() || s.told.Until.Before(p.Until)) {
			p.Until = s.told.Until
		}
	}
	p.Until = shownUntil(p.Until, now)
	return p
}
