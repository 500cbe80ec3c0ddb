package events

import "redlock-proxy/redlock"

// A Verdict is what a command meant for one key.
type Verdict uint8

const (
	Granted   Verdict = iota + 1 // it took the lock
	Extended                     // it gave a lock another TTL
	Changed                      // it changed what the key holds
	Released                     // it released the lock
	Refused                      // somebody else holds the lock
	Absent                       // there was nothing to extend or to release
	Undecided                    // too few masters could vote
	Failed                       // the reply was another error
)

func (v Verdict) String() string {
	return [...]string{"", "granted", "extended", "changed", "released", "refused", "absent", "undecided", "error"}[v]
}

// VerdictOf is what a command meant for its key, or 0 if that is unknown or nothing, as with
// a read or a fencing token. A run that took or released something has effects, which say more.
func VerdictOf(kind redlock.Kind, o *redlock.Outcome) Verdict {
	won := o.Verdict == redlock.Won
	switch {
	case kind == redlock.KindRead || kind == redlock.KindToken || o.Abandoned:
		return 0
	case o.Verdict == redlock.NoQuorum:
		return Undecided
	case o.Err != "":
		return Failed
	case kind == redlock.KindRun && (!won || o.Refused):
		return Refused
	case kind == redlock.KindRun:
		return 0
	case kind == redlock.KindAcquire || kind == redlock.KindSwap:
		if won {
			return Granted
		}
		return Refused
	case !won:
		return Absent
	case kind == redlock.KindExtend:
		return Extended
	}
	return Released
}

// VerdictOfEffect is what a run meant for one key. A run that deletes may create a wake-up for waiting
// clients, which is no lock.
func VerdictOfEffect(did redlock.Effect, deletes bool) Verdict {
	switch {
	case did.Change == redlock.KeyDeleted:
		return Released
	case did.Change == redlock.KeyCreated && !deletes:
		return Granted
	case did.Change == redlock.KeyProlonged:
		return Extended
	}
	return Changed
}
