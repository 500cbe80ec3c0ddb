package proxy

import (
	"bytes"
	"strconv"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// decideUpstream gives the upstream what was held, and the command that
// decided.
func (s *session) decideUpstream(name string, cmd wire.Command, to route.Route) {
	if !s.settle() {
		return
	}
	refusal := ""
	if len(s.watched.locks) > 0 {
		refusal = wire.ErrCrossLock
	} else {
		refusal = s.tryOpen()
	}
	if refusal != "" {
		s.abort(refusal)
		return
	}
	held, count := s.takeHeld()
	s.tellCaching()
	s.sendUnanswered(held, count)
	s.continueUpstream(name, cmd, to)
}

// takeHeld makes the transaction the upstream's and returns what that has to be
// sent of it, and how many commands that are.
func (s *session) takeHeld() (held []byte, count int) {
	t := &s.transaction
	held = resp.AppendCommand(nil, t.multi)
	for _, call := range t.calls {
		held = resp.AppendCommand(held, call.args...)
	}
	count = 1 + len(t.calls)
	s.forgetQueued()
	t.state = transactionUpstream
	return held, count
}

// executeKeyless is EXEC of commands without keys, which the upstream hears of only
// now. The client knows them to be queued: where one is refused, EXEC says why, as
// Redis does with what it refuses since.
func (s *session) executeKeyless(cmd wire.Command) {
	if !s.settle() {
		return
	}
	if refusal := s.tryOpen(); refusal != "" {
		s.endTransaction()
		s.reply(refusal)
		return
	}
	held, count := s.takeHeld()
	s.tellCaching()
	replies, whole, ok := s.askWhole(held, count, nil)
	if !ok {
		return
	}
	refused := bytes.Clone(firstError(replies))
	if !whole || refused == nil {
		s.executeUpstream(cmd)
		return
	}
	s.endTransaction()
	reply, ok := s.ask(asArray(cmd))
	if !ok {
		return
	}
	if string(reply) == wire.ErrExecAbort {
		reply = append([]byte(wire.ErrExecAbortOf), refused[1:]...)
	}
	s.replyBytes(reply)
}

// firstError is the first error among simple replies, nil if there is none.
func firstError(replies []byte) []byte {
	for line := range bytes.Lines(replies) {
		if line[0] == '-' {
			return line
		}
	}
	return nil
}

// continueUpstream is performInTransaction once the upstream has it.
func (s *session) continueUpstream(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "exec":
		s.executeUpstream(cmd)
	case name == "discard" && len(cmd.Args) == 1:
		s.endTransaction()
		s.forward(cmd, debt{left: 1})
	case name == "multi" || name == "watch":
		s.forward(cmd, debt{left: 1})
	case logsIn(name, cmd.Args):
		s.abort(wire.ErrNotInMulti)
	case to.Plane != route.Upstream:
		s.abort(wire.ErrCrossLock)
	case to.Spec.Is(command.Uncountable):
		if s.settle() {
			s.upstream.Load().owed.becomePipe()
			s.endTransaction()
			s.forward(cmd, debt{})
		}
	default:
		s.registerScript(name, cmd.Args)
		s.transaction.note(name, cmd.Args)
		s.forward(cmd, debt{left: 1})
	}
}

// executeUpstream is EXEC. Only when databases were selected must the reply be
// looked into, and so be collected.
func (s *session) executeUpstream(cmd wire.Command) {
	selects := s.transaction.selects
	s.endTransaction()
	if len(selects) == 0 {
		s.forward(cmd, debt{left: 1})
		return
	}
	reply, whole, ok := s.askWhole(asArray(cmd), 1, nil)
	switch {
	case !ok:
		return
	case !whole:
		s.selectAgain(selects)
		s.reply(wire.ErrUpstreamReply)
		return
	}
	elements, _ := resp.Elements(reply)
	for _, selected := range selects {
		if selected.position < len(elements) && elements[selected.position][0] == '+' {
			s.client.db = selected.db
		}
	}
	s.replyBytes(reply)
}

// selectAgain finds out, after an EXEC whose reply could not be looked into, what
// database it has left: the same that its SELECTs lead to now.
func (s *session) selectAgain(selects []queuedSelect) {
	for _, selected := range selects {
		reply, ok := s.ask(resp.AppendCommand(nil, []byte("SELECT"), strconv.AppendInt(nil, int64(selected.db), 10)))
		if !ok {
			return
		}
		if reply[0] == '+' {
			s.client.db = selected.db
		}
	}
}
