package stream

import "time"

// A gate is a call whose answer decides what comes next on the stream: a
// transaction follows its guard only where that has said yes. Until then nothing
// else is sent, for a connection that watches keys stops doing so with the next
// EXEC, whoever's it is.

// postponed is a call that waits behind a gate, with its frames.
type postponed struct {
	call   Call
	frames []byte
}

// tell hands an asker its answer. What waited behind a gate comes after what
// its asker made of the answer.
func (s *Stream) tell(c *Call, replies [][]byte, j Judgement) {
	if c.Gates {
		defer s.openGate()
	}
	c.Asker.Answered(s, c, replies, j, nil)
}

// Follow queues what is to come right behind a gate. Only the gate's asker may
// call it, while it is answered. False: the connection has ended.
func (s *Stream) Follow(c Call, frames []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != up {
		return false
	}
	c.size += len(frames)
	s.asking += c.size
	s.queue(c, frames, time.Now())
	return true
}

// openGate queues what was postponed, up to the next gate.
func (s *Stream) openGate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gated = false
	now := time.Now()
	waiting := s.postponed
	for len(waiting) > 0 && !s.gated {
		s.queue(waiting[0].call, waiting[0].frames, now)
		waiting[0] = postponed{}
		waiting = waiting[1:]
	}
	s.postponed = waiting
}

// forgetGate, with s.mu held, has what was postponed end with the connection:
// it is unwritten as what is still in out.
func (s *Stream) forgetGate() {
	for _, p := range s.postponed {
		s.calls = append(s.calls, p.call)
		s.unwritten++
	}
	s.gated, s.postponed = false, nil
}
