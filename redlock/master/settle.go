package master

import (
	"sync"
	"time"

	"redlock-proxy/redlock/loop"
)

// This file waits for votes after a change of the masters.

const (
	// settling is how long a quorum of votes is waited for after a change of the masters,
	// and how long one request waits, besides the time in which none can count.
	settling = 2 * time.Second
	// settlingLook is the pause between two questions to idle masters meanwhile.
	settlingLook = 10 * time.Millisecond
)

// polls make one of those that wait in settle ask for all.
type polls struct {
	mu    sync.Mutex
	ended chan struct{} // closed when the present one asks no more; nil: nobody asks
}

// begin tells whether the caller is the one that asks, and must call end. If not, it waits for ended.
func (p *polls) begin() (ended <-chan struct{}, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first = p.ended == nil; first {
		p.ended = make(chan struct{})
	}
	return p.ended, first
}

func (p *polls) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.ended = nil
}

// isSettled tells whether nobody needs to wait after a change of the masters.
func (s *Set) isSettled() bool { return s.voters.learned.Load() == s.voters.settled.Load() }

// settle waits until a quorum votes after a change of the masters, or until left is closed.
// One of those that wait has idle masters asked, for all. If it goes, another one does.
func (s *Set) settle(db int, left <-chan struct{}) {
	until := time.Now().Add(s.limits.Load().MasterTimeout + settling)
	for !s.isSettled() && !s.Hopeless(db) {
		ended, first := s.polls.begin()
		if first {
			s.poll(db, until, left)
			return
		}
		if s.loop.Wait(time.Until(until), ended, left, s.ctx.Done()) != 0 {
			return
		}
	}
}

// poll has idle masters asked until a quorum votes or cannot vote. Some changes follow each other at
// once, and each begins the time anew in which no vote counts.
func (s *Set) poll(db int, until time.Time, left <-chan struct{}) {
	defer s.polls.end()
	for !s.Hopeless(db) {
		now, learned, timeout := time.Now(), s.voters.learned.Load(), s.limits.Load().MasterTimeout
		since, pause := now.Sub(*learned), settlingLook
		switch {
		case since < timeout:
			pause = timeout - since
		case since > timeout+settling, s.hasSettled(db, learned.Add(timeout)):
			s.voters.settled.Store(learned)
			return
		default:
			for _, m := range s.List().masters {
				m.beat(now, true)
			}
		}
		if s.loop.Wait(min(pause, time.Until(until)), left, s.ctx.Done()) != loop.Late || !time.Now().Before(until) {
			return
		}
	}
}

// hasSettled tells whether a quorum was asked since then and votes.
func (s *Set) hasSettled(db int, since time.Time) bool {
	asked := 0
	list := s.List()
	voting := s.expect(db, time.Now()).Voting
	for i := range list.Size() {
		if voting.Has(i) && (list.At(i).Embedded() || list.At(i).database(db).latest.load().at.After(since)) {
			asked++
		}
	}
	return asked >= list.Needed()
}
