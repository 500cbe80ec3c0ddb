package roster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/quorum"
)

// This file makes another server the member at a place, whatever brings it there: a reload, a
// Sentinel, or the list that a process was started with.
//
// The server before it may live on, and some processes may reach and count it. The operator stops these,
// or gives them the new list, before the new server votes: it waits for MaxQuarantine. The net below that, and all
// that there is in a promotion, is an epoch. The other server first joins: the next epoch with this server is
// recorded on so many of the other masters that none of these processes has a quorum without reading of it.
// Only then does the new one get its marker, with since = now. If a marker came along with a copy of the data, it
// tells of the earlier run and not of this one.
//
// A server that this process has met as the member need not join after a restart or a flush: its
// earlier run is gone. Most restarts are of this kind. So a restart takes the vote from nobody else,
// not even for the moment that another epoch takes (Standing.At). A process that has just started
// leaves a server to processes that have met it, for a while, and then has it join. If no other master
// remembers, they lost power together and are the same servers as before: none joins. This does not hold for a
// server that Sentinels name: there the server before it may live on, on the other side of a cut.

// joiningPatience is how long this process leaves a server alone that it has not met. A process
// that knows the member may be about to treat the server as restarted.
const joiningPatience = 2 * time.Second

// join records a server as the member at a place from the next epoch on.
func (r *Roster) join(master int, name, run string, now time.Time) {
	if m := r.of(master); r.joined.Has(master) {
		m.before = cmp.Or(m.before, r.joined.Who(master))
	}
	r.change(master, members.Member{Name: name, Run: run}, now)
}

// change begins the next epoch.
func (r *Roster) change(master int, m members.Member, now time.Time) {
	m.Epoch = r.epoch + 1
	r.record(m.Epoch, r.joined.With(master, m), now)
	r.changed()
}

// record takes over an epoch and the masters on record, and their number.
func (r *Roster) record(epoch int64, joined members.List, now time.Time) {
	for i := range joined {
		// A restart or a promotion changes no list.
		if r.joined.Has(i) != joined.Has(i) || r.member(i).Name != members.Read(joined[i]).Name && !r.moves(i) {
			r.listed = now
		}
	}
	// rule: BallotEndsWithEpoch: running ballots may have counted the server before it
	r.epoch, r.joined, r.learned = epoch, joined, now
	if n := r.joined.Counting(); n != r.masters {
		r.masters, r.recalls = n, false
	}
}

// unjoin takes a join back if its server goes away before this process has read of it in a marker.
// Otherwise others that mend the next run by the record before would seem to have an old list. If a
// marker tells of the join after all, this process reads that, like one that has just started.
func (r *Roster) unjoin(p Place, s *view) {
	if m := r.of(p.Master); m.before != "" && p.DB == 0 && r.hasJoined(p, s) {
		r.joined = r.joined.WithText(p.Master, m.before)
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
	own, forgot := s.marker, s.text == ""
	switch {
	case !forgot && (own.Set != r.set || !r.joined.Fits(own.Joined) || own.Member != p.Master+1):
		return false // judge and mend decide about such a marker
	case !forgot && own.Run == s.run:
		return false // the server before it, or one that joined and has its marker
	case r.isNew(p, s):
		// rule: EpochOnRecordFirst: a new server gets its marker when so many others have it on record
		waits := !r.isOnRecord(p.Master)
		return waits
	case r.hasJoined(p, s), r.isMember(p, s):
		return false
	case r.wasReplaced(p, s):
		return true
	case now.Sub(s.since) < joiningPatience:
		return true
	case !s.isRecent(now):
		return true // meanwhile it may be another run, which others know
	case !r.moves(p.Master) && r.rememberingSince(p, s.since) == 0 && (forgot || own.Joined.Who(p.Master) == r.joined.Who(p.Master)):
		return false // all have forgotten
	}
	name, what := r.member(p.Master).Name, "was replaced, restarted or flushed before this process knew it"
	if r.moves(p.Master) {
		name, what = r.names(p.Master), "that Sentinels name was replaced, restarted or flushed"
	}
	r.join(p.Master, name, s.run, now)
	r.warn("a lock master "+what+"; the other masters put the server there on record as new, and it votes after max_quarantine (deploy/INCIDENTS.md#quarantined)",
		"master", r.names(p.Master), "epoch", r.epoch)
	return true
}

// isNew tells whether the server at a place is the recorded member, and has not had a marker as such as far
// as this process knows. It lacks what was granted until now.
func (r *Roster) isNew(p Place, s *view) bool {
	if r.hasMet(p.Master) || s.marker.Joined.Who(p.Master) == r.joined.Who(p.Master) {
		return false
	}
	return r.hasJoined(p, s) || r.isMember(p, s) // it may have restarted meanwhile
}

// hasMet tells whether this process has ever found the present member at a place in order.
func (r *Roster) hasMet(master int) bool { return r.of(master).met == r.joined.Who(master) }

// meets records that a member was found in order.
func (r *Roster) meets(p Place, s *view) {
	if r.remembers(p.Master, s.run) {
		m := r.of(p.Master)
		m.met, m.outdated = r.joined.Who(p.Master), false
	}
}

// rememberingSince counts the other masters that remember, and were asked after since.
func (r *Roster) rememberingSince(p Place, since time.Time) int {
	return r.count(func(i int, s *view) bool {
		return i != p.Master && r.remembers(i, s.run) && s.asked.After(since)
	})
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
	onRecord := s.marker.Joined.Who(p.Master) == r.joined.Who(p.Master)
	return !r.moves(p.Master) && !r.knows(p.Master) && !onRecord && (r.of(p.Master).met != "" || r.isOutdated(p.Master))
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
	case r.isNew(p, s):
		return ": " + r.whileJoining(p.Master)
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
	heard, needed := r.heardOf(master)
	return fmt.Sprintf("it is new in its place, which %d of the other masters have on record and %d must first", heard, needed)
}

// hasRecorded tells whether a marker was last seen to record the present member at another place.
func (r *Roster) hasRecorded(s *view, master int) bool {
	return s.present() && s.marker.Set == r.set && r.joined.Fits(s.marker.Joined) && s.marker.Joined.Who(master) == r.joined.Who(master)
}

// heardOf counts the other masters that have recorded the member at a place, and returns the number that must: so
// many that each quorum of the list before has one of them. A process that has the list before without the operator's
// knowledge is possible in a promotion only. Elsewhere those suffice that can record it, but one at least: a process that
// reads none cannot know that its epoch is the newest.
func (r *Roster) heardOf(master int) (heard, needed int) {
	heard = r.count(func(i int, s *view) bool { return i != master && r.hasRecorded(s, master) })
	needed = min(r.masters-1, quorum.Intersecting(r.masters))
	if !r.moves(master) {
		needed = min(needed, max(1, r.count(func(i int, s *view) bool {
			return i != master && s.present() && s.marker.Set == r.set && s.marker.Run == s.run
		})))
	}
	return heard, needed
}

// isOnRecord tells whether enough of the others have recorded the member at a place.
func (r *Roster) isOnRecord(master int) bool {
	heard, needed := r.heardOf(master)
	return heard >= needed
}

// A Change is another server in the place of a master, or one more master, as a reload names it. Without a Name, the last
// master is removed.
type Change struct {
	Master    int
	Name, Run string // of the server that comes
	Marker    string // what it has under marker.Key
}

// Propose makes a Change, and returns the resulting members. It returns an error if nothing may be changed now, or
// not so.
func (r *Roster) Propose(c Change, now time.Time) (Joined, error) {
	var err error
	if c.Name == "" {
		err = r.remove(c.Master, now)
	} else if err = r.acceptable(c); err == nil {
		err = r.replace(c, now)
	}
	return Joined{r.epoch, r.joined}, err
}

// acceptable returns an error if a server must not become a master. It must have no marker, or one from
// an interrupted replacement by this same server.
func (r *Roster) acceptable(c Change) error {
	i := c.Master
	for p, s := range r.views {
		if s.run == c.Run && s.connected && p.Master != i {
			return fmt.Errorf("it is the same server as %s", r.names(p.Master))
		}
	}
	if c.Marker == "" {
		return nil
	}
	m, ok := marker.Parse(c.Marker)
	if !ok || m.Set != r.set || m.Member != i+1 || !r.joined.Fits(m.Joined) || m.Joined.Who(i) != r.joined.Who(i) {
		return fmt.Errorf("it is or was a lock master elsewhere (%s); when no proxy uses it any more and all its locks have ended, delete the key %s there", c.Marker, marker.Key)
	}
	return nil
}

// replace makes a server join. After the last place, there is one more master.
func (r *Roster) replace(c Change, now time.Time) error {
	m := r.member(c.Master)
	if m.Name == members.PlainName(c.Name) || c.Run != "" && m.Run == members.ShortRun(c.Run) {
		return nil // another process has made the same change
	}
	if err := r.changeable(c.Master, max(r.masters, c.Master+1), now); err != nil {
		return err
	}
	r.join(c.Master, c.Name, c.Run, now)
	return nil
}

// fewest is the number of masters below which none is removed: of two, none may fail.
const fewest = 3

// remove takes place i, the last one, from the masters.
func (r *Roster) remove(i int, now time.Time) error {
	if !r.joined.Has(i) {
		return nil
	}
	if i != r.masters-1 || i < fewest || !r.joined.Has(i-1) {
		return fmt.Errorf("of the %d lock masters on record only the last can be removed, and %d must stay", r.masters, fewest)
	}
	if err := r.changeable(i, r.masters-1, now); err != nil {
		return err
	}
	r.of(i).before = ""
	r.change(i, members.Member{Removed: true}, now)
	return nil
}

// changeable returns an error if the server at place i cannot change now, so that there are so many masters. One change
// comes at a time: when MaxQuarantine is over since the last one, and all others vote that are reached and have it on
// record. The same place may change again at once, such as one whose new server never came up: then all lists that are
// in use still differ in one place only.
func (r *Roster) changeable(i, masters int, now time.Time) error {
	if r.set == "" {
		return errors.New("there is no set of lock masters yet: " + r.reason)
	}
	if i > r.masters {
		return fmt.Errorf("there are %d lock masters on record: reload with these, and then add one", r.masters)
	}
	// rule: OneChangeAtATime: the next change waits for MaxQuarantine
	next := r.nextChange()
	isChanging := r.epoch > 1 && r.member(i).Epoch == r.epoch // the operator may still be giving the new list to others
	if now.Before(next) && !isChanging {
		return fmt.Errorf("the lock masters were changed less than max_quarantine ago, as far as this proxy knows; the next change may come at %s", next.UTC().Format(time.RFC3339))
	}
	voting, needed := 0, quorum.Size(masters)
	for j := range r.masters {
		s := r.views[Place{j, 0}]
		switch {
		case j == i || s == nil || s.told.State == Unreachable:
		case s.told.State != Voting || !r.isUpToDate(s.marker):
			return fmt.Errorf("%s does not vote, and one lock master changes at a time; wait until it votes", r.names(j))
		default:
			voting++
		}
	}
	if voting < needed {
		return fmt.Errorf("%d of the other masters vote now, and a majority of %d is needed", voting, needed)
	}
	return nil
}

// TellAll is the operator's rule. Without it two processes could count different servers for longer than a new one waits.
const TellAll = "give every proxy the present list of masters within max_quarantine minus the longest TTL, or stop it; where you can, stop a replaced server first"

// nextChange returns when the operator may change the masters again, if all vote then. It is long ago if they never changed,
// or if the server of the last change votes in the run in which it joined: then MaxQuarantine is over. A process that
// has just started knows no more about when that change was.
func (r *Roster) nextChange() time.Time {
	over := r.count(func(i int, s *view) bool {
		return r.member(i).Epoch == r.epoch && r.hasJoined(Place{i, 0}, s) && s.told.State == Voting
	})
	if over > 0 {
		return time.Time{}
	}
	return r.learned.Add(r.limits.Apart(r.limits.MaxQuarantine))
}

// Asks tells whether a place must have streams: its server is one of the masters on record. All others may be left (Left).
func (r *Roster) Asks(i int) bool { return r.set == "" || r.joined.Has(i) }

// Joined is the members in an epoch.
type Joined struct {
	Epoch   int64
	members members.List
}

// Heard counts the masters other than i that have recorded the member at place i, and returns
// the number that must. overtaken says that meanwhile another process has made another server
// join.
func (r *Roster) Heard(i int, j Joined) (n, needed int, overtaken bool) {
	n, _ = r.heardOf(i)
	return n, quorum.Size(r.masters), !slices.Equal(r.joined, j.members)
}
