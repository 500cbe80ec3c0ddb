package session

import "redlock-proxy/proxy/wire"

// ReplyError is Reply for an error. An empty one is no reply.
func (s *Session) ReplyError(refusal wire.Error) {
	s.Env.Metrics.Refused(refusal.Code())
	s.Reply(string(refusal))
}

// Reply answers a command after everything before it is answered.
func (s *Session) Reply(text string) {
	if s.Settle() && !s.silent {
		s.pending = append(s.pending, text...)
	}
}

// ReplyBytes is Reply for bytes.
func (s *Session) ReplyBytes(value []byte) {
	if s.Settle() && !s.silent {
		s.pending = append(s.pending, value...)
	}
}

// ReplyAtOnce answers in a pipe, where replies have no order to wait for.
func (s *Session) ReplyAtOnce(text string) {
	s.send()
	s.pending = append(s.pending, text...)
	s.Flush()
}

// Flush writes the pending replies.
func (s *Session) Flush() {
	if len(s.pending) > 0 {
		s.FlushWith(func(replies []byte) []byte { return replies })
	}
}

// FlushWith writes the pending replies. It first calls first with the write lock held, which
// may add replies.
func (s *Session) FlushWith(first func(replies []byte) []byte) {
	if len(s.pending) > mostAppended {
		s.task.Leave() // the copy takes long
	}
	s.out.Lock()
	s.flushLocked(first)
	s.out.AwaitDrained(s.task)
}

// flushLocked is FlushWith with the write lock held, which it gives back.
func (s *Session) flushLocked(first func(replies []byte) []byte) {
	if err := s.writeAfter(first); err != nil {
		s.clientLeft()
	}
	if s.pending = s.pending[:0]; cap(s.pending) > coalesce {
		s.pending = nil
	}
}

func (s *Session) writeAfter(first func(replies []byte) []byte) error {
	defer s.out.Unlock()
	s.pending = first(s.pending)
	return s.out.Append(s.pending)
}
