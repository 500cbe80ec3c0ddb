package roster

import (
	"errors"
	"fmt"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
	"redlock-proxy/redlock/quorum"
)

// This file takes the steps by which the number of masters changes (package members), each from an
// exact quorum: a quorum of masters that have recorded exactly the members of this process.
//
// Between two decisions lies the time of a quarantine. So two locks that live at once were granted
// by numbers that differ by one at most, and share a master.
//
// Before a decision nobody counts votes for a moment: until a quorum has recorded that the number
// is about to change. The process that decides has then read every longest TTL and token that was
// granted by the old number. A process that records the decision raises both. Otherwise N-Q+1
// masters would not know them. A master that forgets meanwhile does not help to decide before its
// quarantine is over.

// recount takes over the number of masters from their record.
func (r *Roster) recount() {
	if n := r.joined.Counting(); n != r.masters && n > 0 {
		r.masters, r.recalls = n, false
	}
}

// hasExactly tells whether a master was last seen to record exactly the present members.
func (r *Roster) hasExactly(i int, now time.Time) bool {
	s := r.views[Place{i, 0}]
	return s != nil && s.isRecent(now) && r.remembers(i, s.run) && r.isUpToDate(s.marker)
}

// keepsExactly counts the masters that have recorded exactly the present members for so long.
func (r *Roster) keepsExactly(least time.Duration, now time.Time) int {
	if text := fmt.Sprint(r.set, r.epoch, r.joined); r.exact.joined != text {
		r.exact = hearing{joined: text, kept: map[int]record{}}
	}
	return r.count(func(i int, s *view) bool {
		return r.hasExactly(i, now) && (r.exact.keeps(i, s, now) >= least || least == 0)
	})
}

// keepsAll counts the masters that have recorded exactly the present members, and know every TTL and
// token that they gave. A master that forgot may have given longer ones, until its quarantine is over
// by this process's own time.
func (r *Roster) keepsAll(now time.Time) int {
	return r.count(func(i int, s *view) bool {
		quarantine := s.marker.Quarantine
		// rule: a quarantine before a decision counts by the slowest clock
		quarantine = r.limits.Apart(quarantine)
		return r.hasExactly(i, now) && (s.marker.Since == 0 || s.asked.Sub(r.of(i).kept.since) >= quarantine)
	})
}

// resize takes the next step of a change of the number of masters.
func (r *Roster) resize(now time.Time) {
	r.withdraw(now)
	r.pursue(now)
	d, changing := r.joined.Next()
	if r.set == "" || !changing {
		return
	}
	need := quorum.Size(r.masters)
	held, recorded := r.keepsExactly(r.limits.ResizeHold(r.granted(now)), now) >= need, r.keepsExactly(0, now)
	if r.joined.IsFrozen() {
		// rule: a master that forgot does not help to decide the number of masters
		recorded = r.keepsAll(now)
	}
	s := r.views[Place{d.Place, 0}]
	if recorded < need || d.Held && !held || d.Votes && (s == nil || s.told.State != Voting) {
		return
	}
	r.step(d.Members, now)
	r.warn("the number of lock masters is being changed", "master", r.names(d.Place), "step", d.Members.Stage(d.Place).Step.String(), "masters", r.masters, "epoch", r.epoch)
}

// step records the next step. Running ballots count no more votes.
func (r *Roster) step(next members.List, now time.Time) {
	r.epoch++
	r.joined, r.learned = next, now
	r.recount()
	r.changed()
}

// Keep says that the operator has reloaded this process with as many masters as before. Otherwise a
// proposed server that never votes might stay proposed for ever. A list that is only old must not
// withdraw what goes on elsewhere. So Keep withdraws an addition only if it takes longer than it can.
func (r *Roster) Keep() {
	r.keeps = true
	r.changed()
}

// withdraw does what Keep says.
func (r *Roster) withdraw(now time.Time) {
	r.keeps = r.keeps && r.wanted == 0 && r.joined.IsProposed()
	if !r.keeps || now.Sub(r.learned) <= r.limits.AdditionLasts() {
		return
	}
	r.warn("the addition of a lock master takes too long, and this process was told to keep their number, so it is withdrawn", "master", r.names(r.masters), "masters", r.masters)
	r.step(r.joined.Withdraw(), now)
}

// pursue takes the next step towards the number that the operator wants.
func (r *Roster) pursue(now time.Time) {
	if r.wanted == 0 || r.set == "" {
		return
	}
	_, changing := r.joined.Changing()
	i := r.masters
	isOurs := r.member(i).Name == members.PlainName(r.names(i)) // the list may have another server there
	if r.wanted > i {
		at := r.joined.Stage(i)
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
	case !changing && r.wanted == r.masters:
		r.wanted = 0
		r.warn("the number of lock masters is what the operator asked for", "masters", r.masters)
	case r.joined.IsProposed() && (r.wanted <= i || !isOurs):
		r.step(r.joined.Withdraw(), now)
	case changing:
	default:
		if r.resizable(now) != nil {
			return
		}
		if r.wanted > r.masters {
			r.step(r.joined.Add(members.Member{Epoch: r.epoch + 1, Name: r.names(i), Run: r.views[Place{i, 0}].run}), now)
		} else {
			r.step(r.joined.Remove(), now)
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
	case s == nil || !s.isRecent(now):
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

// Want says how many masters the operator asks for, by a reload. It returns at once. Tick takes the
// steps, one master after another, and notices tell of each. Each step takes Limits.ResizeHold at
// least. The wish ends when the number is reached, or when another process withdraws what this one
// proposed. Then this process follows others. One that starts wishes nothing: it follows the record.
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
func (r *Roster) Asks(i int) bool { return r.set == "" || r.joined.Has(i) || i < r.wanted }

// change returns what happens to the number of masters.
func (r *Roster) change(now time.Time) Change {
	c := Change{Wanted: r.wanted, Stage: members.Present, Needed: quorum.Size(r.masters), Recorded: r.keepsExactly(0, now)}
	d, changing := r.joined.Next()
	if !changing {
		if r.set == "" || r.wanted == 0 || r.wanted == r.masters {
			return c
		}
		if err := r.resizable(now); err != nil {
			c.Waits = err.Error()
		}
		return c
	}
	c.Stage = r.joined.Stage(d.Place).Step
	s := r.views[Place{d.Place, 0}]
	switch {
	case c.Recorded < c.Needed:
		c.Waits = fmt.Sprintf("on record at %d of %d lock masters, %d needed", c.Recorded, r.masters, c.Needed)
	case d.Votes && (s == nil || s.told.State != Voting):
		c.Waits = r.names(d.Place) + " must vote first"
	case r.joined.IsFrozen() && r.keepsAll(now) < c.Needed:
		c.Waits = "lock masters that have forgotten must be out of quarantine"
	case d.Held:
		c.Waits = "locks that were granted before must have ended"
	}
	if r.keeps && c.Stage == members.Proposed {
		c.Waits += "; it is withdrawn if that takes too long"
	}
	return c
}
