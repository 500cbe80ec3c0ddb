package roster

import (
	"time"
)

// MasterState says whether a master's votes count.
type State uint8

const (
	Away        State = iota // not connected, or it does not answer
	Uncertified              // connected, but not known yet to be a member of the set
	Quarantined              // it may have forgotten locks: asked everything, counted for nothing until a time
	Certified                // it votes
	Barred                   // it must not vote: another set's, one server under two names, a replica, ...
)

func (s State) String() string {
	return [...]string{"away", "uncertified", "quarantined", "certified", "barred"}[s]
}

// Amnesia is why a master may have forgotten locks.
type Amnesia uint8

// The kinds of amnesia.
const (
	Emptied     Amnesia = iota + 1 // it was flushed, or came back without its data
	Restarted                      // it came back with data, which may be old
	ClockJumped                    // its clock jumped forward, past the end of locks
	Replaced                       // it was a replica, and may have loaded another server's copy
)

func (a Amnesia) String() string {
	return [...]string{"", "emptied", "restarted", "clock_jumped", "replaced"}[a]
}

// MasterStatus is one master as this process sees it.
type MasterStatus struct {
	Name   string
	State  State
	Reason string    // why it is not certified, for people; empty if it is
	Until  time.Time // Quarantined: when it will vote again if nothing happens
	// Longest is the longest TTL granted in the set, as the master's marker has
	// it: with RestartDelay and MaxQuarantine it sets how long a quarantine is.
	Longest time.Duration
}

// Status is all masters, in the order of the configuration.
type Status struct {
	Masters []MasterStatus
	Needed  int    // the quorum
	Set     string // the set's id; empty as long as there is none
	Epoch   int64  // how many times a master was replaced, counted from 1
	Reason  string // why there is no set yet; empty if there is one
	// NewUntil is when locks can be granted in a new set, which begins in
	// quarantine; zero: it is none, or they can.
	NewUntil time.Time
}

// Ready tells whether a quorum of masters votes.
func (s Status) Ready() bool {
	certified := 0
	for _, m := range s.Masters {
		if m.State == Certified {
			certified++
		}
	}
	return certified >= s.Needed
}

// silent is why a connected master that does not answer is Away.
const Silent = "it is connected and does not answer"

// notConnected is why a master is Away that there is no connection to.
const NotConnected = "it is not connected"
