package roster

import (
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
)

// How the places stand, as the roster was told last and as others ask.

// Noted takes how a place stands.
func (r *Roster) Noted(p Place, st Standing, now time.Time) {
	if s := r.sight(p); s.connected {
		r.stands(p, s, st, now)
	}
}

// stands takes how a place stands, and tells whether that is news.
func (r *Roster) stands(p Place, s *sight, st Standing, now time.Time) (news bool) {
	news = s.told.State != st.State || s.told.Reason != st.Reason
	s.told = st
	if news {
		r.untold.Turned, r.moved[p.DB] = true, now
	}
	r.announce(p.Master, now)
	return news
}

// announce tells how a master stands where that is news.
func (r *Roster) announce(master int, now time.Time) {
	if is, last := r.statusOf(master, now), r.known[master]; is.State != last.State || is.Reason != last.Reason || is.Name != last.Name {
		r.known[master] = is
		r.tell(Notice{Standing: &is})
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
func (r *Roster) tellNoSet(now time.Time) {
	switch {
	case r.set != "" || r.certified(0) >= quorum.Size(r.masters):
	case r.noSet.reason != r.reason:
		r.noSet = hindrance{reason: r.reason, since: now}
	case !r.noSet.told && now.Sub(r.noSet.since) >= noSetPause:
		r.noSet.told = true
		r.warn("no lock can be decided yet, for there is no set of lock masters", "reason", r.reason)
	}
}

// Silent hears at each beat whether a place leaves questions unanswered, and
// tells whether it has done so for a whole beat. A process that stood still finds
// all masters silent until it has read their answers, so where the beat itself is
// late that begins only now. This is about what people are told: what counts as a
// vote is decided by each ballot.
func (r *Roster) Silent(p Place, unanswered, late bool, now time.Time) bool {
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
	return now.Sub(s.silentSince) >= BeatLength
}

// CertifiedIn are the masters certified in a database, a bit for each.
func (r *Roster) CertifiedIn(db int) (certified uint64) {
	for i := range r.masters {
		if s := r.sights[Place{i, db}]; s != nil && s.told.State == Certified {
			certified |= 1 << i
		}
	}
	return certified
}

// certified counts the masters certified in a database.
func (r *Roster) certified(db int) (n int) {
	for i := range r.masters {
		if s := r.sights[Place{i, db}]; s != nil && s.told.State == Certified {
			n++
		}
	}
	return n
}

// statusOf is how a master stands in the worst of its databases,
// and the longest TTL granted in any.
func (r *Roster) statusOf(master int, now time.Time) MasterStatus {
	worst := Standing{State: Certified}
	found := false
	var longest time.Duration
	for _, db := range r.Databases() {
		s := r.sights[Place{master, db}]
		if s == nil {
			continue
		}
		longest = max(longest, s.told.Longest)
		if db != 0 && s.told.State == Away && s.told.Reason == "" {
			continue // it is used for the first time, and just being dialled
		}
		if !found || rank(s.told.State) > rank(worst.State) {
			worst, found = s.told, true
			if db != 0 && worst.Reason != "" {
				worst.Reason = fmt.Sprintf("in database %d: %s", db, worst.Reason)
			}
		}
	}
	if !found {
		worst = Standing{State: Away, Reason: NotConnected}
	}
	if worst.State != Quarantined {
		worst.Until = time.Time{}
	}
	return MasterStatus{Name: r.names(master), State: worst.State, Reason: worst.Reason, Until: shownUntil(worst.Until, now), Longest: longest}
}

// rank orders states from best to worst.
func rank(s State) int {
	return slices.Index([]State{Certified, Quarantined, Uncertified, Away, Barred}, s)
}

// Quarantined counts the masters in quarantine in a database, and tells when the
// first of them votes again.
func (r *Roster) Quarantined(db int, now time.Time) (n int, until time.Time) {
	for i := range r.masters {
		s := r.sights[Place{i, db}]
		if s == nil || s.told.State != Quarantined {
			continue
		}
		if n++; until.IsZero() || s.told.Until.Before(until) {
			until = s.told.Until
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

// Unsettled: some master that is connected is not certified yet, but may be
// soon.
func (r *Roster) Unsettled() bool {
	for _, s := range r.sights {
		if s.connected && s.told.State == Uncertified {
			return true
		}
	}
	return false
}

func (r *Roster) Status(now time.Time) Status {
	status := Status{Needed: quorum.Size(r.masters), Set: r.set, Epoch: r.epoch, Reason: r.reason, NewUntil: r.NewUntil(now)}
	if r.set != "" {
		status.Reason = ""
	}
	for i := range r.masters {
		status.Masters = append(status.Masters, r.statusOf(i, now))
	}
	return status
}

// Prospects are the masters that are certified in a database, those that may be so
// by some time, and those of which nothing has been read yet; when one of them last
// stood otherwise than before.
type Prospects struct {
	Certified, Hopeful, Arriving uint64 // a bit for each

	Moved time.Time
}

func (r *Roster) Prospects(db int, by, now time.Time) Prospects {
	if r.moved[db].IsZero() {
		r.moved[db] = now
	}
	p := Prospects{Moved: r.moved[db]}
	for i := range r.masters {
		s := r.sights[Place{i, db}]
		if s == nil || s.connected && !s.read {
			p.Arriving |= 1 << i
		}
		if s != nil && s.told.State == Certified {
			p.Certified |= 1 << i
		}
		if s == nil || s.told.State == Certified || s.told.mayVoteBy(by) {
			p.Hopeful |= 1 << i
		}
	}
	return p
}

// mayVoteBy: it is not known that it will not. Who is away may be there in a
// moment; a stream that has dialled in vain knows better.
func (st *Standing) mayVoteBy(by time.Time) bool { return st.State != Barred && !st.Until.After(by) }
