package roster

import (
	"fmt"
	"slices"
	"time"
)

// A server in a master's place that has forgotten, or that carries the marker
// of another run, is mostly the master itself after a restart: the address leads
// where it led before. A process that has seen the master there since it started
// takes it for that. One that has not may have been started with another server
// in the master's place, while processes with the list of before still have
// quorums with the old one. To it the server is a newcomer, which joins as a
// promoted one does: by an epoch that enough of the other masters have on record
// first (promotion.go), and in quarantine from then on.
//
// Where so many have forgotten or were restarted at once that the others are too
// few to take the vote from all of them, nobody could tell newcomers from masters
// that lost power together. Then those that there are have to be told.

// newcomerPause is how long a newcomer is left alone, for a process that knows
// the master may be about to take it for restarted.
const newcomerPause = 2 * time.Second

// takesFor is whom a process takes a server for that does not have the marker
// of its present run.
type takesFor uint8

const (
	theMember   takesFor = iota // restarted, or flushed
	aNewcomer                   // it may be another server, and may join
	theReplaced                 // the server that was here before another took its place
)

// taken tells whom the server at a place is taken for. It is not
// asked of masters that move.
func (r *Roster) taken(p Place, s *sight) takesFor {
	joined, met := r.joined[p.Master], r.met[p.Master]
	name := joinedName(joined)
	known := met == joined || name != "" && joinedAs(joined, r.names(p.Master))
	switch onRecord := s.text != "" && s.marker.Joined[p.Master] == joined; {
	case known && (onRecord || s.text == ""):
		return theMember
	case !known && !onRecord && (met != "" || name != ""):
		return theReplaced
	}
	return aNewcomer
}

// butFirst tells people what has to come before a server without
// a marker is given one.
func (r *Roster) butFirst(p Place, s *sight) string {
	switch {
	case p.DB != 0: // database 0 tells
	case r.isPromoted(p, s):
		return ": it is new in its place, and enough other masters must hear of that first"
	case !r.moves(p.Master) && r.taken(p, s) == theReplaced:
		return fmt.Sprintf(", and another server took its place in epoch %d: give this process the present list of masters, or replace that server by a reload", joinedIn(r.joined[p.Master]))
	}
	return ""
}

// meet remembers that the server behind a place of this process's
// list is the member.
func (r *Roster) meet(p Place) {
	if p.DB == 0 {
		r.met[p.Master] = r.joined[p.Master]
	}
}

// join begins an epoch in which the server at a place is the
// member. Another process may call it by another name, so only its run is told,
// besides the name that a reload gave.
func (r *Roster) join(p Place, s *sight, name string) {
	r.epoch++
	r.joined = slices.Clone(r.joined)
	r.joined[p.Master] = joiner(r.epoch, name, s.run)
	r.changed()
}

// unheard is since when too few of the others have on record which server the
// member at a place is.
type unheard struct {
	joined string
	since  time.Time
}

// isUnheard tells whether too few of the others have on record
// which server the member at a place is.
func (r *Roster) isUnheard(master int, now time.Time) bool {
	if r.heardOf(master) >= r.mustHear(master) {
		delete(r.unheard, master)
		if r.heard[master].joined != r.joined[master] {
			r.heard[master] = unheard{r.joined[master], now}
		}
		return false
	}
	if r.unheard[master].joined != r.joined[master] {
		r.unheard[master] = unheard{r.joined[master], now}
	}
	return true
}

// heardSince is since when enough of the others have on record which server the
// member at a place is. Until then the one before it voted.
func (r *Roster) heardSince(master int) time.Time {
	if h := r.heard[master]; h.joined == r.joined[master] {
		return h.since
	}
	return time.Time{}
}

// unheardFor is for how long that has lasted. Where those that
// should hear of a server have been away as long as any lock lives, they are
// waited for no longer: they are dead, and nobody would ever vote again. (A
// server that Sentinels name is not believed by that: there the one before may
// well live on the other side of a cut.)
func (r *Roster) unheardFor(master int, now time.Time) time.Duration {
	since := r.unheard[master].since
	if since.IsZero() || r.unheard[master].joined != r.joined[master] || r.moves(master) {
		return 0
	}
	return now.Sub(since)
}

// mustHear is how many of the other masters have to have on record,
// which server the member at a place is.
func (r *Roster) mustHear(master int) int {
	enough := min(r.masters-1, r.tellAll())
	if r.moves(master) {
		return enough
	}
	remember := 0
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		forgot := s != nil && s.read && (s.text == "" || s.present() && s.marker.Set == r.set && s.marker.Run != s.run)
		if i != master && !forgot {
			remember++
		}
	}
	return min(enough, remember)
}
