package roster

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/quorum"
)

// This file changes the number of masters, one at a time, and always the last one.
//
// The stages of the places are part of the record that joins use, so they spread like joins, and a
// vote counts only if its master has recorded exactly the members that this process knows. A change
// is proposed, kept on record, and decided. It is decided only from an exact quorum: a quorum of
// masters that have recorded exactly the members of the decision's process. Records only grow, and
// a quorum of N and one of N+1 have a master in common. So of two exact quorums one comes after the
// other, and of two contradictory decisions one cannot be made.
//
// Between two decisions lies the time of a quarantine. So two locks that live at once were granted
// by numbers that differ by one at most, and share a master.
//
// Before a decision nobody counts votes for a moment: until a quorum has recorded that the number is
// about to change. Who decides has then read every longest TTL and token that was granted by the old
// number, and whoever records the decision raises both. Otherwise N-Q+1 masters would not know them.
// A master that forgets meanwhile does not help to decide before its quarantine is over.

// who returns the member at a place of a list, without the stage.
func who(list []string, i int) string {
	if i >= len(list) {
		return ""
	}
	name, _ := members.CutEntry(list[i])
	return name
}

func (r *Roster) who(i int) string { return who(r.joined, i) }

func (r *Roster) stage(i int) members.Stage {
	_, at := members.CutEntry(r.joined[i])
	return at
}

// isOnRecord tells whether a place is one of the masters on record, or shall be.
func (r *Roster) isOnRecord(i int) bool {
	return i < len(r.joined) && r.stage(i).Step != members.Absent
}

// fits tells whether a marker that names this set can be one of it. Places that only one of two
// records has were added, so they have stages.
func (r *Roster) fits(m marker.Marker) bool { return fits(m.Joined, r.joined) }

func fits(a, b []string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) == 0 || !slices.ContainsFunc(b[len(a):], func(entry string) bool { return !members.IsStaged([]string{entry}) })
}

// sameStages tells whether two lists of members have the same stages.
func sameStages(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool {
		_, one := members.CutEntry(a)
		_, other := members.CutEntry(b)
		return one == other
	})
}

// recount takes over the number of masters from their record.
func (r *Roster) recount() {
	if n := members.Counting(r.joined); n != r.masters && n > 0 {
		r.masters, r.recalls = n, false
	}
}

// inFlux returns the places that are being added or removed, and those that do not count though a
// later one does.
func (r *Roster) inFlux() (places []int) {
	for i := range r.joined {
		if step := r.stage(i).Step; step != members.Present && (step != members.Absent || i < r.masters) {
			places = append(places, i)
		}
	}
	return places
}

// isFrozen tells whether nobody counts votes, because the number of masters is about to change.
func (r *Roster) isFrozen() bool {
	for i := range r.joined {
		if at := r.stage(i); at.Step == members.Entering || at.Step == members.Exiting || !at.Counts() && i < r.masters {
			return true
		}
	}
	return false
}

// hasExactly tells whether a master was last seen to record exactly the present members.
func (r *Roster) hasExactly(i int, now time.Time) bool {
	s := r.views[Place{i, 0}]
	return s != nil && s.present() && s.isRecent(now) && r.remembers(i, s.run) && s.marker.Epoch == r.epoch && slices.Equal(s.marker.Joined, r.joined)
}

// keepsExactly counts the masters that have recorded exactly the present members for so long.
func (r *Roster) keepsExactly(least time.Duration, now time.Time) (n int) {
	if text := fmt.Sprint(r.set, r.epoch, r.joined); r.exact.joined != text {
		r.exact = hearing{joined: text, kept: map[int]record{}}
	}
	for i := range r.masters {
		if !r.hasExactly(i, now) {
			continue
		}
		s, k := r.views[Place{i, 0}], r.exact.kept[i]
		if k.since.IsZero() || !k.memory.SameMemory(s.marker) {
			k = record{s.marker, now}
			r.exact.kept[i] = k
		}
		if least == 0 || s.asked.Sub(k.since) >= least {
			n++
		}
	}
	return n
}

// keepsAll counts the masters that have recorded exactly the present members, and know every TTL and
// token that they gave. A master that forgot may have given longer ones, until its quarantine is over
// by this process's own time.
func (r *Roster) keepsAll(now time.Time) (n int) {
	for i := range r.masters {
		s, k := r.views[Place{i, 0}], r.memories[i]
		if r.hasExactly(i, now) && (s.marker.Since == 0 || s.asked.Sub(k.since) >= s.marker.Quarantine+s.marker.Quarantine/50) {
			n++
		}
	}
	return n
}

// resizeHold is how long a change stays proposed: until every lock that was granted before has ended,
// and no process with a sighting can write an earlier record.
func (r *Roster) resizeHold(now time.Time, limits Limits) time.Duration {
	q := quarantine(limits.RestartDelay, r.granted(now), limits.MaxQuarantine)
	return max(hold(limits), q+2*time.Duration(float64(q)*limits.ClockDrift)+joiningPause(limits))
}

// resize takes the next step of a change of the number of masters.
func (r *Roster) resize(now time.Time, limits Limits) {
	r.withdraw(now, limits)
	r.pursue(now)
	flux := r.inFlux()
	if r.set == "" || len(flux) == 0 {
		return
	}
	i, last := flux[0], flux[len(flux)-1]
	at, need := r.stage(i), quorum.Size(r.masters)
	held, recorded := r.keepsExactly(r.resizeHold(now, limits), now) >= need, r.keepsExactly(0, now)
	if r.isFrozen() {
		recorded = r.keepsAll(now)
	}
	s := r.views[Place{i, 0}]
	next := members.Stage{Round: at.Round, Step: at.Step + 1}
	switch {
	case recorded < need:
		return
	case !at.Counts() && i < r.masters: // a process has made an earlier decision known too late
		next = members.Stage{Round: at.Round + 1, Step: members.Present}
	case len(flux) > 1 && !r.stage(last).Counts(): // two changes at once: the addition is dropped
		i, next = last, members.Stage{Round: r.stage(last).Round, Step: members.Absent}
	case len(flux) > 1 && !at.Counts(), !at.Counts() && r.isWithdrawn(i), at.Step == members.Proposed && i != r.masters:
		next.Step = members.Absent
	case at.Step == members.Retiring && i != r.masters-1:
		next = members.Stage{Round: at.Round + 1, Step: members.Present}
	case at.Step == members.Proposed && (!held || s == nil || s.told.State != Certified), at.Step == members.Retiring && !held:
		return
	}
	r.step(i, r.who(i), next, now)
	r.warn("the number of lock masters is being changed", "master", r.names(i), "step", next.Step.String(), "masters", r.masters, "epoch", r.epoch)
}

// step records the next stage of a place. Running ballots count no more votes.
func (r *Roster) step(i int, who string, at members.Stage, now time.Time) {
	r.epoch++
	r.joined, r.learned = slices.Clone(r.joined), now
	if i == len(r.joined) {
		r.joined = append(r.joined, "")
	}
	r.joined[i] = members.Entry(who, at)
	r.recount()
	r.changed()
}

// Keep says that the operator has reloaded this process with as many masters as before. If nobody has
// the wish any more to add a proposed server that never votes, the proposal would stay for ever. A list
// that is only old must not withdraw what goes on elsewhere. So Keep withdraws an addition only when it
// has taken longer than it can.
func (r *Roster) Keep() {
	r.keeps = r.wanted == 0
	r.changed()
}

// isProposed tells whether nothing but the addition of the next place is proposed.
func (r *Roster) isProposed() bool {
	flux, i := r.inFlux(), r.masters
	return len(flux) == 1 && flux[0] == i && r.stage(i).Step == members.Proposed && !r.isWithdrawn(i)
}

// withdraw does what Keep says.
func (r *Roster) withdraw(now time.Time, limits Limits) {
	r.keeps = r.keeps && r.wanted == 0 && r.isProposed()
	if !r.keeps || now.Sub(r.learned) <= additionLasts(limits) {
		return
	}
	i := r.masters
	r.warn("the addition of a lock master takes too long, and this process was told to keep their number, so it is withdrawn", "master", r.names(i), "masters", i)
	r.step(i-1, r.who(i-1), members.Stage{Round: r.stage(i).Round, Step: members.Present}, now)
}

// additionLasts is how long an addition can stay proposed if its server is up: it joins, its quarantine
// ends, and the locks that were granted before end.
func additionLasts(limits Limits) time.Duration {
	q := limits.MaxQuarantine
	return 2 * (hold(limits) + q + 2*time.Duration(float64(q)*limits.ClockDrift) + joiningPause(limits))
}

// pursue takes the next step towards the number that the operator wants.
func (r *Roster) pursue(now time.Time) {
	r.waits = ""
	if r.wanted == 0 || r.set == "" {
		return
	}
	flux, i := r.inFlux(), r.masters
	isOurs := r.member(i).Name == members.PlainName(r.names(i)) // the list may have another server there
	if i < len(r.joined) && r.wanted > i {
		at := r.stage(i)
		if at.Step == members.Proposed && isOurs {
			r.offered = at.Round
		} else if at.Step == members.Absent && at.Round == r.offered {
			// Otherwise two operators who contradict each other would stop the votes again and again.
			r.wanted = 0
			r.warn("another process has withdrawn the addition of a lock master, so this one does not ask for it any more", "master", r.names(i), "masters", r.masters)
			return
		}
	}
	switch {
	case len(flux) == 0 && r.wanted == r.masters:
		r.wanted = 0
		r.warn("the number of lock masters is what the operator asked for", "masters", r.masters)
	case len(flux) == 1 && flux[0] == i && (r.wanted <= i || !isOurs) && r.stage(i).Step == members.Proposed && !r.isWithdrawn(i):
		r.step(i-1, r.who(i-1), members.Stage{Round: r.stage(i).Round, Step: members.Present}, now)
	case len(flux) > 0:
	default:
		if err := r.resizable(now); err != nil {
			r.waits = err.Error()
			return
		}
		if r.wanted > r.masters {
			r.add(r.names(i), r.views[Place{i, 0}].run, now)
		} else {
			r.remove(now)
		}
		r.warn("another number of lock masters is proposed", "masters", r.masters, "wanted", r.wanted, "epoch", r.epoch)
	}
}

// resizable returns an error if the next step towards the wanted number cannot be taken now. All
// masters must have recorded who the masters are. Otherwise one of them, and those that forget, could
// be counted by the number before the last, and two quorums whose numbers differ by two need not meet.
func (r *Roster) resizable(now time.Time) error {
	if r.keepsExactly(0, now) < r.masters {
		i := 0
		for r.hasExactly(i, now) {
			i++
		}
		return fmt.Errorf("%s cannot record another number of masters now, and all of them must", r.names(i))
	}
	if r.wanted < r.masters {
		return nil
	}
	p := Place{r.masters, 0}
	s := r.views[p]
	switch {
	case s == nil || !s.connected || !s.isRecent(now):
		return fmt.Errorf("%s is to be added and is not reached", r.names(p.Master))
	case s.problem != "":
		return fmt.Errorf("%s is to be added: %s", r.names(p.Master), s.problem)
	case s.Replica:
		return fmt.Errorf("%s is to be added: %s", r.names(p.Master), IsReplica)
	case s.broken:
		return fmt.Errorf("%s is to be added: %s", r.names(p.Master), marker.Unreadable(s.text))
	}
	if err := r.Acceptable(p.Master, s.run, s.text); err != nil {
		return fmt.Errorf("%s is to be added: %w", r.names(p.Master), err)
	}
	return nil
}

// add proposes a server as one more master, in the place after the last one.
func (r *Roster) add(name, run string, now time.Time) {
	at := members.Stage{Round: 1}
	for i := range r.joined {
		at.Round = max(at.Round, r.stage(i).Round+1)
	}
	r.step(r.masters, members.Member{Epoch: r.epoch + 1, Name: name, Run: run}.String(), at, now)
}

// remove proposes to do without the last master.
func (r *Roster) remove(now time.Time) {
	i := r.masters - 1
	r.step(i, r.who(i), members.Stage{Round: r.stage(i).Round, Step: members.Retiring}, now)
}

// isWithdrawn tells whether the addition of a place was withdrawn: another place has its round.
func (r *Roster) isWithdrawn(i int) bool {
	for j := range r.joined {
		if j != i && r.stage(j).Round >= r.stage(i).Round {
			return true
		}
	}
	return false
}

// Want says how many masters the operator asks for, by a reload. It returns at once. Tick takes the
// steps, one master after another, and notices tell of each. Each step takes hold or the longest
// quarantine at least. The wish ends when the number is reached, or when another process withdraws
// what this one proposed. After that this process follows what
// others do. A process that starts wishes nothing: it follows the record.
//
// The caller has set the servers of new places before (SetServer), and connects to them. It goes on
// asking a server that is to go until Asks says otherwise.
func (r *Roster) Want(masters int) error {
	switch {
	case masters < 2 || len(r.joined) < 2:
		return errors.New("the number of lock masters cannot change from or to one, because a single one cannot learn what it forgot")
	case masters > quorum.MaxMasters:
		return fmt.Errorf("there can be %d lock masters at most", quorum.MaxMasters)
	}
	r.wanted, r.offered = masters, -1
	r.changed()
	return nil
}

// Asks tells whether a place must have streams: its server is one of the masters on record, or is
// wanted as one. All others may be left (Left).
func (r *Roster) Asks(i int) bool { return r.set == "" || r.isOnRecord(i) || i < r.wanted }

// change returns what happens to the number of masters.
func (r *Roster) change(now time.Time) Change {
	c := Change{Wanted: r.wanted, Stage: members.Present, Needed: quorum.Size(r.masters), Recorded: r.keepsExactly(0, now), Waits: r.waits}
	flux := r.inFlux()
	if len(flux) == 0 {
		return c
	}
	c.Stage = r.stage(flux[0]).Step
	s := r.views[Place{flux[0], 0}]
	switch {
	case c.Recorded < c.Needed:
		c.Waits = fmt.Sprintf("%d lock masters have this on record, and %d must", c.Recorded, c.Needed)
	case c.Stage == members.Proposed && (s == nil || s.told.State != Certified):
		c.Waits = r.names(flux[0]) + " must vote first"
	case r.isFrozen() && r.keepsAll(now) < c.Needed:
		c.Waits = "lock masters that have forgotten must be out of quarantine"
	case c.Stage == members.Proposed || c.Stage == members.Retiring:
		c.Waits = "locks that were granted before must have ended"
	}
	if r.keeps && c.Stage == members.Proposed {
		c.Waits += "; it is withdrawn if that takes too long"
	}
	return c
}
