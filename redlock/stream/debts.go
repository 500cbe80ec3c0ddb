package stream

import (
	"slices"
	"time"
)

// This file keeps the debts of a stream and sends them (queue.go says what a debt is).

// Deliver sends a debt now, behind all calls that were sent before. If the stream cannot
// send it, it keeps the debt for the next connection. later says that the debt was kept
// before.
func (s *Stream) Deliver(d *Debt, now time.Time, later bool) {
	m := Sending{Frames: d.append(nil, now, later, s.owner.Timeout())}
	if !s.Send(Call{Replies: 1, Asker: &payment{d, false}}, m, now) {
		s.Owe(d)
	}
}

// OwesWrite tells whether a call from before asked that may write the key is unanswered. The
// master may execute it late, so a release behind it must be Blind.
func (s *Stream) OwesWrite(key string, asked time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls[s.head:], func(c Call) bool {
		return c.sent.Before(asked) && slices.Contains(c.Writes, key)
	})
}

// Owe keeps a debt for the next connection. If the queue is full, Owe drops it, and the
// key stays until its TTL ends.
func (s *Stream) Owe(d *Debt) {
	defer s.tellQueued()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != closed {
		s.keep(d)
	}
}

// keep stores, with s.mu held, a debt for the next connection if there is room.
func (s *Stream) keep(d *Debt) {
	if len(s.debts) >= maxDebts || s.debtBytes >= maxDebtBytes {
		return
	}
	s.debts = append(s.debts, d)
	s.debtBytes += d.size()
	s.queued.Add(1)
}

// payDebts sends, with s.mu held, the debts that were kept while the master was
// unreachable or could not serve.
func (s *Stream) payDebts(now time.Time) {
	if s.state >= down {
		return
	}
	for _, d := range s.debts {
		s.push(Call{Replies: 1, Asker: &payment{d, true}}, d.append(nil, now, true, s.owner.Timeout()), now)
	}
	s.unpaid += len(s.debts)
	s.clearDebts()
}

// clearDebts drops, with s.mu held, all debts kept for the next connection.
func (s *Stream) clearDebts() {
	s.queued.Add(-int64(len(s.debts)))
	s.debts, s.debtBytes = nil, 0
}

// payLater sends the debts again after debtPause, because the master could not serve them
// now. It does so even if nobody asks the master anything.
func (s *Stream) payLater() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paying {
		return
	}
	s.paying = true
	time.AfterFunc(debtPause, func() {
		Contained(s.log, func() {
			defer s.tellQueued()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.paying = false
			s.payDebts(time.Now())
		})
	})
}

const debtPause = 100 * time.Millisecond
