package master

import (
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// This file waits for votes after a change of who the masters are.

const (
	// settling is how long a quorum of votes is waited for after a change of who the masters are,
	// and how long one request waits, besides the time in which none can count.
	settling = 2 * time.Second
	// settlingLook is the pause between two questions to idle masters meanwhile.
	settlingLook = 10 * time.Millisecond
)

// isSettled tells whether nobody needs to wait after a change of who the masters are.
func (s *Set) isSettled() bool { return s.voters.learned.Load() == s.voters.settled.Load() }

// settle waits until a quorum votes after a change of who the masters are. Some steps follow each
// other at once, and each begins the time anew in which no vote counts. One of those that wait has
// idle masters asked, for all.
func (s *Set) settle(db int) {
	began := time.Now()
	for now := began; s.ctx.Err() == nil; now = time.Now() {
		learned, timeout := s.voters.learned.Load(), s.limits.Load().MasterTimeout
		since := now.Sub(*learned)
		switch {
		case now.Sub(began) > timeout+settling, s.Hopeless(db):
			return
		case since < timeout:
			stream.Sleep(s.ctx, timeout-since)
			continue
		case since > timeout+settling, s.hasSettled(db, learned.Add(timeout)):
			s.voters.settled.Store(learned)
			return
		}
		if looked := s.looked.Load(); now.UnixNano()-looked >= int64(settlingLook) && s.looked.CompareAndSwap(looked, now.UnixNano()) {
			for _, m := range s.List().masters {
				m.beat(now, true, false)
			}
		}
		stream.Sleep(s.ctx, settlingLook)
	}
}

// hasSettled tells whether a quorum was asked since then and votes.
func (s *Set) hasSettled(db int, since time.Time) bool {
	asked := 0
	list := s.List()
	certified := ask(s.voters, func(r *roster.Roster) quorum.Set { return r.CertifiedIn(db) })
	for i := range list.Size() {
		if certified.Has(i) && (list.At(i).Embedded() || list.At(i).database(db).latest.load().at.After(since)) {
			asked++
		}
	}
	return asked >= list.Needed()
}
