package redlock

import (
	"time"

	"redlock-proxy/redlock/roster"
)

// What callers have to know of who may vote.
type (
	// MasterState says whether a master's votes count.
	MasterState = roster.State
	// MasterStatus is one master as this process sees it.
	MasterStatus = roster.MasterStatus
	// Status is all masters, in the order of the configuration.
	Status = roster.Status
	// Amnesia is why a master may have forgotten locks.
	Amnesia = roster.Amnesia
	// MarkerFacts is what a marker says, for those who show it to people.
	MarkerFacts = roster.MarkerFacts
	// Found is what one look at a master found, for Survey.
	Found = roster.Found
	// Standing is whether a master's votes count, and why not.
	Standing = roster.Standing
	// Server is how a master is called.
	Server = roster.Server
)

// The states of a master.
const (
	Away        = roster.Away
	Uncertified = roster.Uncertified
	Quarantined = roster.Quarantined
	Certified   = roster.Certified
	Barred      = roster.Barred
)

// The kinds of amnesia.
const (
	Emptied     = roster.Emptied
	Restarted   = roster.Restarted
	ClockJumped = roster.ClockJumped
	Replaced    = roster.Replaced
)

// MarkerKey is the one key of ours on a master, in every database that it has.
// No client may touch it.
const MarkerKey = roster.MarkerKey

// ReadMarker reads the value of MarkerKey; ok is false for any other text.
func ReadMarker(text string) (facts MarkerFacts, ok bool) {
	return roster.ReadMarker(text, time.Now())
}

// Survey says how masters stand by their markers, for who looks from outside: as a
// Locker would that is started now, and without writing anything.
func Survey(found []Found) []Standing { return roster.Survey(found, time.Now()) }

// NewSetNotice is what people should know of masters that form a new set.
func NewSetNotice(until time.Time) string { return roster.NewSetNotice(until) }

// Status tells how the masters stand.
func (l *Locker) Status() Status {
	now := time.Now()
	status := ask(l.voters, func(r *roster.Roster) Status { return r.Status(now) })
	for i, m := range l.masters {
		if m.stream(0).Silent(now) {
			status.Masters[i].State, status.Masters[i].Reason = Away, roster.Silent
		}
	}
	return status
}
