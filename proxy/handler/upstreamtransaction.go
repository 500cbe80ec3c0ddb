package handler

import (
	"bytes"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// decideUpstream sends the upstream the held transaction, and the command that decided the
// plane.
func (h *Handler) decideUpstream(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() {
		return
	}
	var refusal wire.Error
	if len(h.watched.locks) > 0 {
		refusal = wire.ErrCrossLock
	} else {
		refusal = h.tryOpenFor(cmd)
	}
	if refusal != "" {
		h.abort(refusal)
		return
	}
	held, count := h.takeHeld()
	h.sendCaching()
	h.Insert(held, upstream.Expectation{To: upstream.ToNobody, Count: count})
	h.continueUpstream(name, cmd, to)
}

// takeHeld makes the transaction the upstream's. It returns the commands to send, beginning
// with MULTI, and their number.
func (h *Handler) takeHeld() (held []byte, count int) {
	t := &h.transaction
	held = resp.AppendCommand(nil, t.multi)
	for _, call := range t.calls {
		held = resp.AppendCommand(held, call.Args...)
	}
	count = 1 + len(t.calls)
	h.forgetQueued()
	t.State = route.AtUpstream
	return held, count
}

// executeKeyless performs EXEC on the upstream if no command had a key. The upstream gets
// the commands only now, but the client has already got QUEUED for each of them. If the
// upstream refuses one, EXEC's error says why, as Redis does for a refusal at EXEC.
func (h *Handler) executeKeyless(cmd wire.Command) {
	if !h.Settle() {
		return
	}
	if refusal := h.TryOpen(); refusal != "" {
		h.endTransaction()
		h.ReplyError(refusal)
		return
	}
	held, count := h.takeHeld()
	h.sendCaching()
	h.Insert(held, upstream.Expectation{To: upstream.ToOwner, Count: count})
	replies, ok := h.Settled()
	if !ok {
		return
	}
	refused := bytes.Clone(wire.FirstError(replies))
	if refused == nil {
		h.executeUpstream(cmd)
		return
	}
	h.endTransaction()
	reply, ok := h.Ask(cmd.AsArray())
	if !ok {
		return
	}
	if wire.Error(reply) == wire.ErrExecAbort {
		reply = append([]byte(wire.ErrExecAbortOf), refused[1:]...)
	}
	h.ReplyBytes(reply)
}

// continueUpstream is performInTransaction once the upstream has the transaction.
func (h *Handler) continueUpstream(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "exec":
		h.executeUpstream(cmd)
	case name == "discard" && len(cmd.Args) == 1:
		h.endTransaction()
		h.relay(cmd, upstream.Expectation{Count: 1})
	case name == "multi" || name == "watch":
		h.relay(cmd, upstream.Expectation{Count: 1})
	case wire.LogsIn(name, cmd.Args):
		h.abort(wire.ErrNotInMulti)
	case to.Plane != route.Upstream:
		h.abort(wire.ErrCrossLock)
	case to.Spec.Is(command.Uncountable):
		if h.Settle() {
			h.endTransaction()
			h.relay(cmd, upstream.Expectation{Kind: upstream.Stream})
		}
	default:
		h.noteLocking(cmd.Args, &to, h.service.Scripts.Learn(name, cmd.Args))
		h.transaction.Queued(name, cmd.Args, to)
		h.relay(cmd, upstream.Expectation{Count: 1})
	}
}

// executeUpstream performs EXEC on the upstream. The proxy collects and reads the reply only
// if the transaction has a SELECT.
func (h *Handler) executeUpstream(cmd wire.Command) {
	ended := h.transaction.Transaction
	h.endTransaction()
	selects := ended.Selects()
	if len(selects) == 0 {
		h.relay(cmd, upstream.Expectation{Count: 1})
		return
	}
	h.Insert(cmd.AsArray(), upstream.Expectation{To: upstream.ToOwner, Count: 1})
	reply, ok := h.Settled()
	switch {
	case !ok:
		return
	case reply == nil:
		h.selectAgain(selects)
		h.ReplyError(wire.ErrUpstreamReply)
		return
	}
	elements, _ := resp.Elements(reply)
	h.client.DB = ended.DatabaseAfter(h.client.DB, elements)
	h.ReplyBytes(reply)
}

// selectAgain is called after an EXEC whose reply was too large to keep, so that its
// database is unknown. It sends the SELECTs again; they lead to the same database.
func (h *Handler) selectAgain(selects []int) {
	for _, db := range selects {
		reply, ok := h.Ask(wire.SelectCommand(db))
		if !ok {
			return
		}
		if reply[0] == '+' {
			h.client.DB = db
		}
	}
}
