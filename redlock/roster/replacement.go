package roster

import (
	"errors"
	"fmt"
	"slices"

	"redlock-proxy/redlock/quorum"
)

// Acceptable tells whether a server may become the master at place i: one
// without a marker, or one that a replacement which was cut off had begun with.
func (r *Roster) Acceptable(i int, run, text string) error {
	for p, s := range r.sights {
		if s.run == run && s.connected && p.Master != i {
			return fmt.Errorf("it is the same server as %s", r.names(p.Master))
		}
	}
	if text == "" {
		return nil
	}
	m, ok := ParseMarker(text)
	if !ok || m.Set != r.set || m.Member != i+1 || m.Members != r.masters || m.Joined[i] != r.joined[i] {
		return fmt.Errorf("it is or was a lock master elsewhere (%s); when no proxy uses it any more and all its locks have ended, delete the key %s there", text, MarkerKey)
	}
	return nil
}

// Replaceable tells whether the masters that stay can carry a replacement.
func (r *Roster) Replaceable(i int) error {
	if r.set == "" {
		return errors.New("there is no set of lock masters yet: " + r.reason)
	}
	stay, recording := 0, 0
	for j := range r.masters {
		s := r.sights[Place{j, 0}]
		if s == nil || j == i {
			continue
		}
		if s.told.State == Certified {
			stay++
		}
		if s.told.State == Certified || s.told.State == Quarantined {
			recording++
		}
	}
	needed := quorum.Size(r.masters)
	switch {
	case recording < needed:
		return fmt.Errorf("of the masters that stay %d can put it on record now, and a majority of %d is needed", recording, needed)
	case stay < needed && r.certified(0) >= needed:
		// A dead master may be replaced while others are in quarantine, but one that
		// is needed may not.
		return fmt.Errorf("of the masters that stay %d vote now, and a majority of %d is needed; wait until their quarantine is over", stay, needed)
	}
	return nil
}

// Advance begins the next epoch, in which another server is the master at
// place i. It returns who the masters are in it.
func (r *Roster) Advance(i int, name, run string) Joined {
	now := r.joined[i]
	if joinedName(now) != "" && joinedAs(now, name) || run != "" && joinedRun(now) == ShortRun(run) {
		return Joined{r.epoch, r.joined} // another process has made the same replacement
	}
	r.epoch++
	r.joined = slices.Clone(r.joined)
	r.joined[i] = joiner(r.epoch, name, "")
	r.changed()
	return Joined{r.epoch, r.joined}
}

// Joined is who the masters are in an epoch.
type Joined struct {
	Epoch   int64
	members []string
}

// Heard counts the masters other than i that have an epoch on record, with these
// masters, and says how many have to. Another process may have begun one of the
// same number: overtaken tells that this is so.
func (r *Roster) Heard(i int, j Joined) (n, needed int, overtaken bool) {
	for other := range r.masters {
		if s := r.sights[Place{other, 0}]; other != i && s != nil && s.present() && s.marker.Set == r.set && s.marker.Epoch == j.Epoch && slices.Equal(s.marker.Joined, j.members) {
			n++
		}
	}
	return n, quorum.Size(r.masters), r.epoch != j.Epoch || !slices.Equal(r.joined, j.members)
}

// Left forgets what was seen of the master that was at a place.
func (r *Roster) Left(i int) {
	delete(r.met, i)
	delete(r.runs, i)
	delete(r.blank, i)
	for p := range r.sights {
		if p.Master == i {
			delete(r.sights, p)
		}
	}
	r.changed()
}
