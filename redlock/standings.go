package redlock

import (
	"fmt"
	"slices"
	"time"
)

// How the places stand, as the roster was told last and as others ask.

// note takes how a place stands.
func (r *roster) note(p place, st standing, now time.Time) {
	if s := r.sight(p); s.connected {
		r.stands(p, s, st, now)
	}
}

// stands takes how a place stands, and tells whether that is news.
func (r *roster) stands(p place, s *sight, st standing, now time.Time) (news bool) {
	news = s.told.state != st.state || s.told.reason != st.reason
	s.told = st
	if news {
		r.untold.turned, r.moved[p.db] = true, now
	}
	r.announce(p.master, now)
	return news
}

// announce tells how a master stands where that is news.
func (r *roster) announce(master int, now time.Time) {
	if is, last := r.statusOf(master, now), r.known[master]; is.State != last.State || is.Reason != last.Reason || is.Name != last.Name {
		r.known[master] = is
		r.tell(notice{standing: &is})
	}
}

// noSetPause is how long it is left untold that there is no set: mostly the
// masters are just being reached.
const noSetPause = 2 * time.Second

// A hindrance is what keeps a set from beginning, since when, and whether the log
// has it.
type hindrance struct {
	reason string
	since  time.Time
	told   bool
}

// tellNoSet logs each reason why there is no set once it has lasted.
func (r *roster) tellNoSet(now time.Time) {
	switch {
	case r.set != "" || r.certified(0) >= majority(r.masters):
	case r.noSet.reason != r.reason:
		r.noSet = hindrance{reason: r.reason, since: now}
	case !r.noSet.told && now.Sub(r.noSet.since) >= noSetPause:
		r.noSet.told = true
		r.warn("no lock can be decided yet, for there is no set of lock masters", "reason", r.reason)
	}
}

// keepsSilent hears at each beat whether a place leaves questions unanswered, and
// tells whether it has done so for a whole beat. A process that stood still finds
// all masters silent until it has read their answers, so where the beat itself is
// late that begins only now. This is about what people are told: what counts as a
// vote is decided by each ballot.
func (r *roster) keepsSilent(p place, unanswered, late bool, now time.Time) bool {
	s := r.sights[p]
	switch {
	case s == nil: // it is being dialled for the first time
		return false
	case !unanswered:
		s.silentSince = time.Time{}
		return false
	case late || s.silentSince.IsZero():
		s.silentSince = now
	}
	return now.Sub(s.silentSince) >= beatLength
}

// certifiedIn are the masters certified in a database, a bit for each.
func (r *roster) certifiedIn(db int) (certified uint64) {
	for i := range r.masters {
		if s := r.sights[place{i, db}]; s != nil && s.told.state == Certified {
			certified |= 1 << i
		}
	}
	return certified
}

// certified counts the masters certified in a database.
func (r *roster) certified(db int) (n int) {
	for i := range r.masters {
		if s := r.sights[place{i, db}]; s != nil && s.told.state == Certified {
			n++
		}
	}
	return n
}

// statusOf is how a master stands in the worst of its databases,
// and the longest TTL granted in any.
func (r *roster) statusOf(master int, now time.Time) MasterStatus {
	worst := standing{state: Certified}
	found := false
	var longest time.Duration
	for _, db := range r.databases() {
		s := r.sights[place{master, db}]
		if s == nil {
			continue
		}
		longest = max(longest, s.told.longest)
		if db != 0 && s.told.state == Away && s.told.reason == "" {
			continue // it is used for the first time, and just being dialled
		}
		if !found || rank(s.told.state) > rank(worst.state) {
			worst, found = s.told, true
			if db != 0 && worst.reason != "" {
				worst.reason = fmt.Sprintf("in database %d: %s", db, worst.reason)
			}
		}
	}
	if !found {
		worst = standing{state: Away, reason: notConnected}
	}
	if worst.state != Quarantined {
		worst.until = time.Time{}
	}
	return MasterStatus{Name: r.names(master), State: worst.state, Reason: worst.reason, Until: shownUntil(worst.until, now), Longest: longest}
}

// rank orders states from best to worst.
func rank(s MasterState) int {
	return slices.Index([]MasterState{Certified, Quarantined, Uncertified, Away, Barred}, s)
}

// quarantined counts the masters in quarantine in a database, and tells when the
// first of them votes again.
func (r *roster) quarantined(db int, now time.Time) (n int, until time.Time) {
	for i := range r.masters {
		s := r.sights[place{i, db}]
		if s == nil || s.told.state != Quarantined {
			continue
		}
		if n++; until.IsZero() || s.told.until.Before(until) {
			until = s.told.until
		}
	}
	return n, shownUntil(until, now)
}

// shownUntil is the end of a quarantine for people: the next whole second, for they
// read no less, and never in the past, for the master is about to be looked at.
func shownUntil(until, now time.Time) time.Time {
	if until.IsZero() {
		return until
	}
	if until.Before(now) {
		until = now
	}
	return until.Add(time.Second - 1).Truncate(time.Second)
}

// unsettled: some master that is connected is not certified yet, but may be
// soon.
func (r *roster) unsettled() bool {
	for _, s := range r.sights {
		if s.connected && s.told.state == Uncertified {
			return true
		}
	}
	return false
}

func (r *roster) status(now time.Time) Status {
	status := Status{Needed: majority(r.masters), Set: r.set, Epoch: r.epoch, Reason: r.reason, NewUntil: r.newUntil(now)}
	if r.set != "" {
		status.Reason = ""
	}
	for i := range r.masters {
		status.Masters = append(status.Masters, r.statusOf(i, now))
	}
	return status
}

// prospects are the masters that are certified in a database, those that may be so
// by some time, and those of which nothing has been read yet; when one of them last
// stood otherwise than before.
type prospects struct {
	certified, hopeful, arriving uint64 // a bit for each

	moved time.Time
}

func (r *roster) prospects(db int, by, now time.Time) prospects {
	if r.moved[db].IsZero() {
		r.moved[db] = now
	}
	p := prospects{moved: r.moved[db]}
	for i := range r.masters {
		s := r.sights[place{i, db}]
		if s == nil || s.connected && !s.read {
			p.arriving |= 1 << i
		}
		if s != nil && s.told.state == Certified {
			p.certified |= 1 << i
		}
		if s == nil || s.told.state == Certified || s.told.mayVoteBy(by) {
			p.hopeful |= 1 << i
		}
	}
	return p
}

// mayVoteBy: it is not known that it will not. Who is away may be there in a
// moment; a stream that has dialled in vain knows better.
func (st *standing) mayVoteBy(by time.Time) bool { return st.state != Barred && !st.until.After(by) }
