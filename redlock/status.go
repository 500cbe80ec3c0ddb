package redlock

import "time"

// Status tells how the masters stand.
func (l *Locker) Status() Status {
	now := time.Now()
	status := ask(l.voters, func(r *roster) Status { return r.status(now) })
	for i, m := range l.masters {
		if m.stream(0).silent(now) {
			status.Masters[i].State, status.Masters[i].Reason = Away, silent
		}
	}
	return status
}
