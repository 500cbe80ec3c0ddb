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

// Noted records the standing of a place. It is ignored if the place is not connected.
func (r *Roster) Noted(p Place, st Standing, now time.Time) {
	if s := r.view(p); s.connected {
		r.stands(p, s, st, now)
	}
}

// stands records the standing of a place, and tells whether it has changed.
func (r *Roster) stands(p Place, s *view, st Standing, now time.Time) (news bool) {
	news = s.told.State != st.State || s.told.Reason != st.Reason
	s.told = st
	if news {
		r.untold.Turned, r.moved[p.DB] = true, now
	}
	r.announce(p.Master, now)
	return news
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
	case r.set != "" || r.VotingIn(0).Len() >= quorum.Size(r.masters):
	case r.noSet.reason != r.reason:
		r.noSet = setProblem{reason: r.reason, since: now}
	case !r.noSet.told && now.Sub(r.noSet.since) >= noSetPause:
		r.noSet.told = true
		r.warn("no lock can be decided yet, because there is no set of lock masters", "reason", r.reason)
	}
}

// Silent is called at each beat, with whether a place leaves questions unanswered. It tells
// whether the place has done so for a whole beat. A process that stood still finds all masters
// silent until it has read their answers. So after a late beat the time starts anew. This is
// only about what people are told: each ballot decides for itself what counts as a vote.
func (r *Roster) Silent(p Place, unanswered, late bool, now time.Time) bool {
	s := r.views[p]
	switch {
	case s == nil: // the place is being dialled for the first time
		return false
	case !unanswered:
		s.silentSince = time.Time{}
		return false
	case late || s.silentSince.IsZero():
		s.silentSince = now
	}
	return now.Sub(s.silentSince) >= BeatLength
}

// VotingIn returns the masters that vote in a database.
func (r *Roster) VotingIn(db int) quorum.Set { return r.are(db, Voting) }

// FillableIn returns the masters of the set that answer in a database: they vote, or are
// in quarantine. Keys that are written to them stay.
func (r *Roster) FillableIn(db int) quorum.Set { return r.are(db, Voting, Quarantined) }

// are returns the masters that are in one of these states in a database.
func (r *Roster) are(db int, states ...State) (set quorum.Set) {
	for i := range r.masters {
		if s := r.views[Place{i, db}]; s != nil && slices.Contains(states, s.told.State) {
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

// Quarantined counts the masters in quarantine in a database, and returns when the first of
// them votes again.
func (r *Roster) Quarantined(db int, now time.Time) (n int, until time.Time) {
	for i := range r.masters {
		s := r.views[Place{i, db}]
		if s == nil || s.told.State != Quarantined {
			continue
		}
		if n++; until.IsZero() || s.told.Until.Before(until) {
			until = s.told.Until
		}
	}
	return n, shownUntil(until, now)
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

// Unsettled tells whether a connected master does not vote yet, but may be soon.
func (r *Roster) Unsettled() bool {
	for _, s := range r.views {
		if s.told.State == Starting {
			return true
		}
	}
	return false
}

// Status returns what this process knows of all masters, for people.
func (r *Roster) Status(now time.Time) Status {
	status := Status{Needed: quorum.Size(r.masters), Set: r.set, Epoch: r.epoch, Reason: r.reason, Learned: r.learned, NewUntil: r.NewUntil(now)}
	if r.set != "" {
		status.Reason = ""
	}
	if next := r.nextChange(); now.Before(next) {
		status.NextChange = next
		status.TellAll = !r.listed.IsZero() && now.Before(r.listed.Add(next.Sub(r.learned)))
	}
	for i := range r.masters {
		status.Masters = append(status.Masters, r.statusOf(i, now))
	}
	for i := r.masters; i < max(len(r.servers), len(r.joined)); i++ {
		status.Others = append(status.Others, r.statusOf(i, now))
	}
	return status
}

// Prospects are the masters that vote in a database, those that may be by some time,
// and those of which nothing has been read yet. Moved is when the state of one of them last
// changed.
type Prospects struct {
	Voting, Hopeful, Arriving quorum.Set

	Moved time.Time
}

// Prospects returns the Prospects of a database. by is the time for Hopeful.
func (r *Roster) Prospects(db int, by, now time.Time) Prospects {
	if r.moved[db].IsZero() {
		r.moved[db] = now
	}
	p := Prospects{Moved: r.moved[db]}
	for i := range r.masters {
		s := r.views[Place{i, db}]
		if s == nil || s.connected && !s.read {
			p.Arriving |= 1 << i
		}
		if s != nil && s.told.State == Voting {
			p.Voting |= 1 << i
		}
		if s == nil || s.told.mayVoteBy(by) {
			p.Hopeful |= 1 << i
		}
	}
	return p
}

// mayVoteBy tells whether a place may vote by then. An unreachable master may be back in a
// moment. A stream that has dialled in vain knows better.
func (st *Standing) mayVoteBy(by time.Time) bool { return st.State != Rejected && !st.Until.After(by) }
