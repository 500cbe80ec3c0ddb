package roster

import "time"

// A roster's output is data. Its owner logs and reports it after it has released the roster.

// Ready is what a roster has for its owner since it was asked last.
type Ready struct {
	Notices []Notice // in order
	Turned  bool     // the state of a place has changed
	Changed bool     // something that Tick depends on has changed

	Version   uint64 // rises when judged places must be judged again
	Witnessed bool   // this process saw the set begin, so no lock is older
	// Learned is when this process last learned of other members, or of a step of their number. No
	// vote counts for Limits.MasterTimeout after that. It is zero if it has learned of none.
	Learned time.Time

	// Masters is how many masters there are by their record: a lock needs a quorum of so many. It
	// may change with Version. A ballot takes it once, when it begins, and counts a vote only if
	// Standing.Masters is the same number.
	Masters int
	// Unsettled says that at the last Tick a connected master did not vote yet, but could be about to.
	Unsettled bool
}

// A Notice is a log line or the new state of a master.
type Notice struct {
	Standing *MasterStatus // nil: it is a log line
	Grave    bool          // the line is an error and not a warning
	Text     string
	Fields   []any // names and values
}

// Ready returns what has come up since the last call.
func (r *Roster) Ready() Ready {
	ready := r.untold
	ready.Version, ready.Witnessed, ready.Learned, ready.Masters, ready.Unsettled = r.version, r.witnessed, r.learned, r.masters, r.unsettled
	r.untold = Ready{}
	return ready
}

func (r *Roster) tell(n Notice) { r.untold.Notices = append(r.untold.Notices, n) }

func (r *Roster) warn(text string, fields ...any) {
	r.tell(Notice{Text: text, Fields: fields})
}
