package roster

import "time"

// Learned returns when this process last learned of other members, or of a step of their number.
// No vote counts for Limits.MasterTimeout after that.
func (r *Roster) Learned() time.Time { return r.learned }
