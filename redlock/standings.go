package redlock

import (
	"slices"
	"time"
)

// How the places stand, as the roster was told last and as others ask.

// note takes how a place stands.
func (r *roster) note(p place, st standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sight(p); s.connected {
		r.stands(p, s, st)
	}
}

// stands takes, with mu held, how a place stands, and tells whether that is news.
func (r *roster) stands(p place, s *sight, st standing) (news bool) {
	news = s.told.state != st.state || s.told.reason != st.reason
	s.told = st
	if news {
		close(r.turned)
		r.turned = make(chan struct{})
	}
	if now, last := r.statusOf(p.master), r.known[p.master]; now.State != last.State || now.Reason != last.Reason || now.Name != last.Name {
		r.known[p.master] = now
		r.tell(now)
	}
	return news
}

// voting counts the masters certified in a database, and returns a channel
// that is closed when that may have changed.
func (r *roster) voting(db int) (certified int, turned <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.masters {
		if s := r.sights[place{i, db}]; s != nil && s.told.state == Certified {
			certified++
		}
	}
	return certified, r.turned
}

// statusOf is, with mu held, how a master stands in the worst of its databases,
// and the longest TTL granted in any.
func (r *roster) statusOf(master int) MasterStatus {
	worst := standing{state: Certified}
	found := false
	var longest time.Duration
	for _, db := range r.databases() {
		s := r.sights[place{master, db}]
		if s == nil {
			continue
		}
		longest = max(longest, s.told.longest)
		if !found || rank(s.told.state) > rank(worst.state) {
			worst, found = s.told, true
		}
	}
	if !found {
		worst = standing{state: Away, reason: notConnected}
	}
	return MasterStatus{Name: r.names(master), State: worst.state, Reason: worst.reason, Until: worst.until, Longest: longest}
}

// rank orders states from best to worst.
func rank(s MasterState) int {
	return slices.Index([]MasterState{Certified, Quarantined, Uncertified, Away, Barred}, s)
}

// quarantined counts the masters in quarantine in a database, and tells when the
// first of them votes again.
func (r *roster) quarantined(db int) (n int, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.masters {
		s := r.sights[place{i, db}]
		if s == nil || s.told.state != Quarantined {
			continue
		}
		if n++; until.IsZero() || s.told.until.Before(until) {
			until = s.told.until
		}
	}
	return n, until
}

// unsettled: some master that is connected is not certified yet, but may be
// soon.
func (r *roster) unsettled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sights {
		if s.connected && s.told.state == Uncertified {
			return true
		}
	}
	return false
}

func (r *roster) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := Status{Needed: quorum(r.masters), Set: r.set, Epoch: r.epoch, Reason: r.reason}
	if r.set != "" {
		status.Reason = ""
	}
	for i := range r.masters {
		status.Masters = append(status.Masters, r.statusOf(i))
	}
	return status
}
