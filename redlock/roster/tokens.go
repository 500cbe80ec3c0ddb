package roster

import (
	"time"

	"redlock-proxy/redlock/marker"
)

// A fencing token is a number that grows with each lock (redlock/token). The marker of a
// master's database 0 ends with the largest token that the master knows. It has no such
// field before the first token.
//
// A token is answered only if a quorum has recorded it as larger than any before. So at
// most N-Q masters that remember know less, and any N-Q+1 of them know the largest token.
// A master that may have forgotten learns it from so many others, and its marker is
// written with it. If it cannot learn from so many, the token becomes the time in ms.
// Tokens begin at that time, and grow by one. So they are below it, unless more than a
// thousand a second were given since the set began.
//
// That time is the wall clock of one process. Let the last tokens be on a and b only, of a,
// b and c. If a dies, and b is flushed before the process that mends b has read them, b
// begins at that process's clock. If this is behind the clock at which the tokens began,
// b and c give some of them again. So two failures at once are covered only as far as the
// clocks of all processes are in step.

// tokenRead records a token that was read in the marker of a place.
func (r *Roster) tokenRead(s *view, token int64) {
	if s.present() && s.marker.Set == r.set {
		r.token = max(r.token, token)
	}
}

// tokenLearned returns the token for a marker that is written anew. The place may have
// forgotten tokens until forgot.
func (r *Roster) tokenLearned(p Place, cause Amnesia, forgot, now time.Time) int64 {
	if p.DB != 0 || cause == ClockJumped { // the record is in database 0, and survives the jump of a clock
		return r.token
	}
	// A process with the old list may still give tokens that only the server before a new one records. So what the
	// others know now is not enough for a new one.
	// rule: the last token is learned after the ballots that were under way
	forgot = forgot.Add(r.limits.MasterTimeout)
	if !r.isNew(p, r.views[p]) && r.rememberingSince(p, forgot) >= max(1, r.othersThatTell()) {
		return r.token
	}
	return max(r.token, marker.FirstToken(now))
}
