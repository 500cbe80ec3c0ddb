package roster

import "time"

// State says whether a master's votes count.
type State uint8

const (
	Unreachable State = iota // it is not connected, or does not answer
	Starting                 // it is connected, but not known yet to be a member of the set
	Quarantined              // it may have forgotten locks: it is asked, but its votes do not count until a time
	Voting                   // it votes
	Rejected                 // it must not vote: it is of another set, a replica, one server under two names, ..., or it refuses locks
)

func (s State) String() string {
	return [...]string{"unreachable", "starting", "quarantined", "voting", "rejected"}[s]
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
	Reason string    // why it does not vote, for people; empty if it does
	Until  time.Time // when it will vote again if nothing happens; Quarantined only
	// Longest is the longest TTL granted in the set, as the master's marker records it.
	// Together with RestartDelay and MaxQuarantine it determines the length of a quarantine.
	Longest time.Duration
	// ClockAhead is by how much its clock is ahead of ours. It is wrong by ClockWithin at
	// most. Both are 0 if its clock was not read, or if it is Unreachable.
	ClockAhead, ClockWithin time.Duration
}

// Status is all masters, in the order of their places.
type Status struct {
	Masters []MasterStatus // those that count, whether this process's list has them or not
	// Others are in this process's list, or on record, and do not count yet or any more. Their
	// places follow those of Masters.
	Others []MasterStatus
	Needed int    // the quorum of Masters
	Set    string // the set's id; empty if there is no set
	Epoch  int64  // number of the epoch: 1, and one more for each change of the masters
	Reason string // why there is no set yet; empty if there is one
	// Learned is when this process last learned of a change of the masters. It is zero if it has
	// learned of none.
	Learned time.Time
	// NextChange is when the operator may change the masters again, if all vote then. It is zero if that is over.
	NextChange time.Time
	// TellAll says that the operator's rule TellAll holds until NextChange: this process saw the list of masters change.
	TellAll bool
	// NewUntil is when locks can be granted in a new set, which begins in quarantine. It is
	// zero if the set is not new, or if locks can be granted already.
	NewUntil time.Time
}

// Ready tells whether a quorum of masters votes.
func (s Status) Ready() bool {
	voting := 0
	for _, m := range s.Masters {
		if m.State == Voting {
			voting++
		}
	}
	return voting >= s.Needed
}

// Silent is the reason of a connected master that is Unreachable because it does not answer.
const Silent = "it is connected and does not answer"

// Unlisted is the reason of a master on record that this process cannot reach.
const Unlisted = "it is one of the masters on record, and not in the list of this proxy: reload this proxy with the present list of masters"

// NotConnected is the reason of a master that is Unreachable because it has no connection.
const NotConnected = "it is not connected"

// A Replication is what a server says about its part in replication.
type Replication struct {
	Replica bool
	ID      string // master_replid, shortened; empty if the server does not say
	// Was says that the server has been a replica since it got its id. A server also changes
	// its id when its first replica comes, and long after the last has gone. Then Was is false.
	Was bool
}

const IsReplica = "it is a replica of another server, and a lock master must stand alone"
const isSwapped = "it holds what another database held: SWAPDB was executed"

// Replaced tells whether a server may have loaded another server's memory since a marker
// recorded its replication id.
func (r Replication) Replaced(recorded string) bool {
	return r.ID != recorded && r.Was
}
