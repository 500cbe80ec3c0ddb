package roster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/quorum"
)

// This file makes another server the member at a place, whatever brings it there: a reload, a
// Sentinel, or the list that a process was started with.
//
// The server before it may live on, and some processes may reach and count it. So the other server
// first joins. The next epoch with this server is recorded on enough of the other masters, so that
// none of these processes has a quorum without reading of it. From then on the server before it votes
// nowhere. Only then does the new one get its marker, with since = now. It lacks what was granted
// until then, and its quarantine covers that. If a marker came along with a copy of the data, it
// tells of the earlier run and not of this one.
//
// A server that this process has seen as the member need not join after a restart or a flush: its
// earlier run is gone. Most restarts are of this kind. So a restart takes the vote from nobody else,
// not even for the moment that another epoch takes (Standing.At). A process that has just started
// leaves a server to processes that have seen it, for a while, and then has it join.
//
// So many masters may forget at once that too few of the others remember. Then they lost power
// together, and they are the same servers as before. In this case the join must be recorded on those that
// remember. This does not hold for a server that Sentinels name: there the server before it may live on, on the
// other side of a cut.

// joiningPatience is how long this process leaves a server alone that it has not met. A process
// that knows the member may be about to treat the server as restarted.
const joiningPatience = 2 * time.Second

// join records a server as the member at a place from the next epoch on.
func (r *Roster) join(master int, name, run string) {
	r.epoch++
	m := r.of(master)
	m.before = cmp.Or(m.before, r.joined.Who(master))
	r.joined = r.joined.With(master, members.Member{Epoch: r.epoch, Name: name, Run: run}.String())
	r.changed()
}

// unjoin takes a join back if its server goes away before this process has read of it in a marker.
// Otherwise others that mend the next run by the record before would seem to have an old list. If a
// marker tells of the join after all, this process reads that, like one that has just started.
func (r *Roster) unjoin(p Place, s *view) {
	if m := r.of(p.Master); m.before != "" && p.DB == 0 && r.hasJoined(p, s) {
		r.joined = r.joined.With(p.Master, m.before) // the number of masters is not taken back
		m.before = ""
		r.changed()
	}
}

// member returns the recorded member at a place, as far as this process knows.
func (r *Roster) member(master int) members.Member { return members.Read(r.joined.Who(master)) }

// hasJoined tells whether the server at a place is the recorded member, in the run in which it
// joined.
func (r *Roster) hasJoined(p Place, s *view) bool {
	return s.run != "" && r.member(p.Master).Run == members.ShortRun(s.run)
}

// joins tells whether nothing may be written to a place yet, because the server there is not
// known to be its member, or not to enough others. If needed it begins the join.
func (r *Roster) joins(p Place, s *view, now time.Time) bool {
	if s.blank {
		return false
	}
	own, forgot, joined := s.marker, s.text == "", r.hasJoined(p, s)
	switch {
	case !forgot && (own.Set != r.set || !r.joined.Fits(own.Joined) || own.Member != p.Master+1):
		return false // judge and mend decide about such a marker
	case !forgot && own.Run == s.run:
		return false // the server before it, or one that joined and has its marker
	case joined || r.isMember(p, s):
		knows := joined || r.knowsMembers(p, s, now)
		// It may have joined, and have restarted before it got its marker.
		isNew := joined || r.member(p.Master).Run != "" && !r.hasMet(p.Master)
		waits := !knows || isNew && !r.hasSeen(p, now) && r.isUnheard(p.Master, now)
		r.sticks(p.Master, waits && now.Sub(s.since) >= r.limits.RestartDelay && (!knows || r.heardSince(p.Master).IsZero()))
		return waits
	case r.wasReplaced(p, s):
		return true
	case now.Sub(s.since) < joiningPatience:
		return true
	case !s.isRecent(now):
		return true // meanwhile it may be another run, which others know
	}
	name, what := r.member(p.Master).Name, "was replaced, restarted or flushed before this process knew it"
	if r.moves(p.Master) {
		name, what = r.names(p.Master), "that Sentinels name was replaced, restarted or flushed"
	}
	r.join(p.Master, name, s.run)
	r.warn("a lock master "+what+"; the other masters put the server there on record as new, and it votes after its quarantine",
		"master", r.names(p.Master), "epoch", r.epoch)
	return true
}

// sticks records whether a master waits for others that may never come back. People are told.
func (r *Roster) sticks(master int, stuck bool) {
	if m := r.of(master); m.stuck != stuck {
		m.stuck = stuck
		r.changed()
	}
}

// knows tells whether this process has seen the member at a place, or whether the member's name
// says that it is the configured server. A Sentinel's name may belong to any server.
func (r *Roster) knows(master int) bool {
	m := r.member(master)
	return !r.moves(master) && (r.hasMet(master) || m.Name != "" && m.Name == members.PlainName(r.names(master)))
}

// isMember tells whether a server without a marker of its present run is the member itself,
// restarted or flushed.
func (r *Roster) isMember(p Place, s *view) bool {
	return r.knows(p.Master) && (s.text == "" || s.marker.Joined.Who(p.Master) == r.joined.Who(p.Master))
}

// wasReplaced tells whether a server was here before the member. Such a server gives way, and
// comes back only by a reload.
func (r *Roster) wasReplaced(p Place, s *view) bool {
	onRecord := s.text != "" && s.marker.Joined.Who(p.Master) == r.joined.Who(p.Master)
	return !r.moves(p.Master) && !r.knows(p.Master) && !onRecord && (r.of(p.Master).sighting.joined != "" || r.isOutdated(p.Master))
}

// isOutdated tells whether a reload elsewhere has replaced the server on this process's list. It
// stays so when all masters forget that and begin a new set.
func (r *Roster) isOutdated(master int) bool {
	return r.of(master).outdated || r.member(master).Name != "" && !r.knows(master)
}

// butFirst says, for people, what must happen before a server without a marker gets one.
func (r *Roster) butFirst(p Place, s *view) string {
	switch {
	case p.DB != 0: // the reason of database 0 says it
	case r.hasJoined(p, s):
		return ": " + r.whileJoining(p.Master)
	case r.of(p.Master).stuck:
		return ", and too few other masters that remember the set can be reached: bring one more back, or start an empty server at its address"
	case r.wasReplaced(p, s):
		when := fmt.Sprintf("in epoch %d", r.member(p.Master).Epoch)
		if r.of(p.Master).outdated {
			when = "in the set before this one"
		}
		return ", and another server took its place " + when + ": reload this proxy with the present list; to bring this server back, reload with that list first, and then with this one"
	}
	return ""
}

// whileJoining says, for people, what a server waits for that has joined.
func (r *Roster) whileJoining(master int) string {
	if r.of(master).stuck {
		return "it is new in its place, and too few other masters that have this on record can be reached: bring one more back, or start an empty server at its address"
	}
	return "it is new in its place; enough other masters must first keep that on record, for twice restart_delay and a few seconds"
}

// A hearing is what this process knows of how the other masters record the member at a place.
type hearing struct {
	joined string
	heard  time.Time // since when enough of them have recorded it; zero if too few have
	kept   map[int]record
}

// A record is the member at a place as another master records it. It was there from since on, as
// long as the master has kept that memory.
type record struct {
	memory marker.Marker
	since  time.Time
}

// keeps returns for how long a master has recorded it. The master records it now.
func (h *hearing) keeps(i int, s *view, now time.Time) time.Duration {
	k := h.kept[i]
	if k.since.IsZero() || !k.memory.SameMemory(s.marker) {
		k = record{s.marker, now}
		h.kept[i] = k
	}
	return s.asked.Sub(k.since)
}

// isUnheard tells whether too few of the other masters have kept the member at a place on record
// for long enough.
func (r *Roster) isUnheard(master int, now time.Time) bool {
	h := &r.of(master).hearing
	if h.joined != r.joined.Who(master) {
		*h = hearing{joined: r.joined.Who(master), kept: map[int]record{}}
	}
	keep := 0
	for i := range r.masters {
		if i == master || !r.hasRecorded(i, master) {
			continue
		}
		if h.keeps(i, r.views[Place{i, 0}], now) >= r.limits.Hold() {
			keep++
		}
	}
	needed := r.mustHear(master)
	switch {
	case r.heardOf(master) < needed:
		// rule: the server before it votes again where its successor is not on record any more
		h.heard = time.Time{}
	case h.heard.IsZero():
		h.heard = now
	}
	return keep < needed
}

// heardSince returns since when enough of the others have recorded the member at a place. Until
// then the server before it voted.
func (r *Roster) heardSince(master int) time.Time {
	if h := r.of(master).hearing; h.joined == r.joined.Who(master) {
		return h.heard
	}
	return time.Time{}
}

// hasRecorded tells whether a master was last seen to record the present member at another place.
func (r *Roster) hasRecorded(i, master int) bool {
	s := r.views[Place{i, 0}]
	return s != nil && s.present() && s.marker.Set == r.set && r.joined.Fits(s.marker.Joined) && s.marker.Joined.Who(master) == r.joined.Who(master)
}

// heardOf counts the other masters that have recorded the member at a place.
func (r *Roster) heardOf(master int) int {
	return r.count(func(i int, _ *view) bool { return i != master && r.hasRecorded(i, master) })
}

// mustHear returns the number of other masters that must have recorded it. Masters that forgot
// together with it need not. But one of several may soon get its record back from a process with a
// sighting. It must have been read without a record for as long as such a process may wait. Time
// alone does not count: this process may have stood still meanwhile, and knows only what it read
// before.
func (r *Roster) mustHear(master int) int {
	if r.moves(master) {
		return r.othersThatTell()
	}
	remember, hopeful := 0, 0
	for i := range r.masters {
		s := r.views[Place{i, 0}]
		forgot := s != nil && (s.absent() || s.present() && s.marker.Set == r.set && s.marker.Run != s.run)
		switch {
		case i == master:
		case !forgot:
			remember++
		case s.asked.Sub(s.since) < r.limits.Hold():
			hopeful++
		}
	}
	if remember > 0 {
		// rule: a join does not count without masters that have just forgotten
		remember += hopeful
	}
	return min(r.othersThatTell(), remember)
}

// Acceptable returns an error if a server must not become the master at place i. The server
// must have no marker, or one from an interrupted replacement by this same server.
func (r *Roster) Acceptable(i int, run, text string) error {
	for p, s := range r.views {
		if s.run == run && s.connected && p.Master != i {
			return fmt.Errorf("it is the same server as %s", r.names(p.Master))
		}
	}
	if text == "" {
		return nil
	}
	m, ok := marker.Parse(text)
	if !ok || m.Set != r.set || m.Member != i+1 || !r.joined.Fits(m.Joined) || m.Joined.Who(i) != r.joined.Who(i) {
		return fmt.Errorf("it is or was a lock master elsewhere (%s); when no proxy uses it any more and all its locks have ended, delete the key %s there", text, marker.Key)
	}
	return nil
}

// Replaceable returns an error if the remaining masters cannot carry a replacement at place i.
func (r *Roster) Replaceable(i int) error {
	if r.set == "" {
		return errors.New("there is no set of lock masters yet: " + r.reason)
	}
	if _, changing := r.joined.Changing(); changing {
		return errors.New("the number of lock masters is being changed; replace a master when that is over")
	}
	if i >= r.masters {
		return fmt.Errorf("%s is not one of the %d masters on record yet; reload with the masters on record, and then with this list", r.names(i), r.masters)
	}
	stay, recording := (r.VotingIn(0) &^ (1 << i)).Len(), (r.FillableIn(0) &^ (1 << i)).Len()
	needed := quorum.Size(r.masters)
	switch {
	case recording < needed:
		return fmt.Errorf("%d of the remaining masters can record the replacement now, and a majority of %d is needed", recording, needed)
	case stay < needed && r.VotingIn(0).Len() >= needed:
		// A dead master may be replaced while others are in quarantine. A master whose vote is
		// needed may not.
		return fmt.Errorf("%d of the remaining masters vote now, and a majority of %d is needed; wait until their quarantine is over", stay, needed)
	}
	return nil
}

// Replace makes a server join at place i, as a reload names it. It returns the resulting
// members.
func (r *Roster) Replace(i int, name, run string) Joined {
	m := r.member(i)
	if m.Name == members.PlainName(name) || run != "" && m.Run == members.ShortRun(run) {
		return Joined{r.epoch, r.joined} // another process has made the same replacement
	}
	r.join(i, name, run)
	return Joined{r.epoch, r.joined}
}

// Joined is the members in an epoch.
type Joined struct {
	Epoch   int64
	members members.List
}

// Heard counts the masters other than i that have recorded the member at place i, and returns
// the number that must. overtaken says that meanwhile another process has made another server
// join.
func (r *Roster) Heard(i int, j Joined) (n, needed int, overtaken bool) {
	return r.heardOf(i), quorum.Size(r.masters), !slices.Equal(r.joined, j.members)
}

// Left drops what was seen of the former master at a place.
func (r *Roster) Left(i int) {
	delete(r.all, i)
	maps.DeleteFunc(r.views, func(p Place, _ *view) bool { return p.Master == i })
	r.changed()
}
