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
	s.Send()
	s.pending = append(s.pending, text...)
	s.flush()
}
