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
	for i := s.head; i < len(s.calls); i++ { // there may be tens of thousands, so none is copied
		if c := &s.calls[i]; len(c.Writes) > 0 && c.sent.Before(asked) && slices.Contains(c.Writes, key) {
			return true
		}
	}
	return false
}

// Owe keeps a debt for the next connection. If the queue is full, Owe drops it, and the
// key stays until its TTL ends.
func (s *Stream) Owe(d *Debt) {
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
}

// mostPaid is the largest number of debts that are sent together. After a while without an
// answer under load a master has tens of thousands. Whoever asks it next would wait until all
// of them are encoded.
const mostPaid = 1 << 10

// payDebts sends, with s.mu held, the oldest debts that were kept while the master was
// unreachable or could not serve. The next ones follow when these are answered.
func (s *Stream) payDebts(now time.Time) {
	if s.state >= down || s.unpaid > 0 {
		return
	}
	s.unpaid = min(len(s.debts), mostPaid)
	for _, d := range s.debts[:s.unpaid] {
		s.push(Call{Replies: 1, Asker: &payment{d, true}}, d.append(nil, now, true, s.owner.Timeout()), now)
	}
	s.dropDebts(s.unpaid)
}

// paid notes that a debt which was kept is answered. After the last of those that were sent
// together the next ones follow, if the master serves.
func (s *Stream) paid(served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unpaid--; served {
		s.payDebts(time.Now())
	}
}

// firstDebts returns, with s.mu held, the number of debts with which a connection begins:
// all of them if a call waits that may create a lock.
func (s *Stream) firstDebts() int {
	if slices.ContainsFunc(s.calls[s.head:], func(c Call) bool { return c.creates }) ||
		slices.ContainsFunc(s.postponed, func(p postponed) bool { return p.call.creates }) {
		return len(s.debts)
	}
	return min(len(s.debts), mostPaid)
}

// dropDebts drops, with s.mu held, the oldest n debts.
func (s *Stream) dropDebts(n int) {
	for i, d := range s.debts[:n] {
		s.debtBytes -= d.size()
		s.debts[i] = nil
	}
	if s.debts = s.debts[n:]; len(s.debts) == 0 {
		s.debts = nil
	}
}

// dropSettled drops, with s.mu held, the debts that are over at a time.
func (s *Stream) dropSettled(at time.Time) {
	s.debts = slices.DeleteFunc(s.debts, func(d *Debt) bool {
		over := d.over(at)
		if over {
			s.debtBytes -= d.size()
		}
		return over
	})
}
