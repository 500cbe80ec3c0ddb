package stream

import (
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// A gate is a call whose answer decides the next call on the stream. A transaction
// follows its guard only if the guard has agreed. Until then the stream sends nothing
// else, because the next EXEC, of whatever call, ends the WATCH of the connection.

// postponed is a call that waits behind a gate, with its encoded frames.
type postponed struct {
	call   Call
	frames []byte
}

// tell hands an asker its answer. If the call is a gate, the calls behind it go out after
// its asker has returned.
func (s *Stream) tell(c *Call, replies [][]byte, j Judgement) {
	if c.Gates {
		defer s.openGate()
	}
	if slices.ContainsFunc(replies, resp.IsTooLong) {
		c.Asker.Answered(s, c, nil, j, ErrTooLong)
		return
	}
	c.Asker.Answered(s, c, replies, j, nil)
}

// Follow queues a call right behind a gate. Only the gate's asker may call it, during
// Answered. It returns false if the connection has ended.
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

// openGate queues the postponed calls, up to the next gate.
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

// forgetGate, with s.mu held, moves the postponed calls to the unwritten ones. They end
// with the connection like the calls in out.
func (s *Stream) forgetGate() {
	for _, p := range s.postponed {
		s.calls = append(s.calls, p.call)
		s.unwritten++
	}
	s.gated, s.postponed = false, nil
}
