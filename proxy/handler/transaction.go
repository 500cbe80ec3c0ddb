package handler

import (
	"bytes"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A transaction holds the commands between MULTI and EXEC. The proxy answers MULTI, because
// the plane is not known yet. route.Transaction decides about the plane.
type transaction struct {
	route.Transaction
	multi []byte         // as the client spelled it, for a MONITOR on the upstream
	calls []lock.Command // queued here, with copies of their arguments
	bytes int            // the memory that calls take from the budget
	size  int            // of the queued commands as they came
	keys  int            // of these commands; one without a key counts, too
}

// These are rough sizes of what a queued command takes in addition to its bytes.
const (
	queuedOverhead   = 200
	argumentOverhead = 32
)

// database returns the database of the next command's keys.
func (h *Handler) database() int { return h.transaction.Database(h.client.DB) }

func (h *Handler) inTransaction() bool { return h.transaction.State != route.NoTransaction }

// performMulti performs MULTI outside a transaction.
func (h *Handler) performMulti(cmd wire.Command, spec *command.Spec) {
	if !h.mayAnswer("multi", cmd.Args, spec) {
		return
	}
	h.transaction.State, h.transaction.multi = route.Held, bytes.Clone(cmd.Args[0])
	h.awaitInvalidations()
	h.Reply(wire.OK)
}

// performInTransaction performs every command after MULTI, including EXEC and DISCARD.
func (h *Handler) performInTransaction(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "quit":
		h.Reply(wire.OK)
		h.End(session.Quit)
	case name == "reset" && len(cmd.Args) == 1:
		if h.Settle() {
			h.reset()
		}
	case name == "exec" && h.generation != h.Env.Active.Load().Router.Generation:
		h.abort("") // this also sends DISCARD to an upstream that has the transaction
		h.refuseTransaction(wire.ErrExecRules)
	case name == "exec" && to.Plane != route.Upstream:
		h.abort(wire.ErrExecCondition)
	case h.subscribesToLocks(name, cmd.Args):
		h.abort(wire.ErrSubscribeInMulti)
	case h.transaction.State == route.AtUpstream:
		h.continueUpstream(name, cmd, to)
	case to.Spec == nil && h.transaction.State == route.Held:
		// The upstream may have a module that knows the command.
		h.decideUpstream(name, cmd, to)
	default:
		h.continueHere(name, cmd, to)
	}
}

// continueHere is performInTransaction while the upstream does not have the transaction.
func (h *Handler) continueHere(name string, cmd wire.Command, to route.Route) {
	switch step, refusal := h.transaction.Next(name, cmd.Args, to, h.watched.offLocks(h.client.DB)); step {
	case route.Queue:
		h.queue(name, cmd, to)
	case route.Check:
		h.Reply(wire.Queued)
	case route.ToUpstream:
		h.decideUpstream(name, cmd, to)
	case route.Execute:
		h.executeHere(cmd)
	case route.Discard:
		h.leaveTransaction(wire.OK)
	case route.Refuse:
		h.ReplyError(refusal)
	case route.Abort:
		h.abort(refusal)
	case route.End:
		h.refuseTransaction(refusal)
	}
}

// queue keeps a copy of a command for EXEC, and answers QUEUED.
func (h *Handler) queue(name string, cmd wire.Command, to route.Route) {
	t := &h.transaction
	t.size, t.keys = t.size+len(cmd.Raw), t.keys+max(1, len(to.Keys))
	memory := len(cmd.Raw) + queuedOverhead + len(cmd.Args)*argumentOverhead
	if refusal := h.hold(t.size+h.watched.bytes, memory); refusal != "" {
		h.abort(refusal)
		return
	}
	t.bytes += memory
	args := cmd.CloneArgs()
	t.calls = append(t.calls, lock.Command{DB: h.client.DB, Args: args, Route: to, Client: h, From: h.clients.Entry})
	t.Queued(name, args, to)
	h.awaitInvalidations()
	h.Reply(wire.Queued)
}

// hold takes memory for one more part of a transaction: a queued command or the value of a
// watched key. size is that of all parts. It returns an error if a limit is reached. Until a
// command decides the plane, the upstream may be the one to run the transaction.
func (h *Handler) hold(size, memory int) wire.Error {
	limits, locks := &h.Env.Active.Load().Limits, h.transaction.State == route.AtLocks
	most, limit := limits.Transaction, config.LimitTransaction
	if locks || len(h.watched.locks) > 0 {
		most, limit = limits.LockCommand, config.LimitLockCommand
	}
	switch {
	case int64(size) > most:
		return h.reached(limit, wire.ErrTooLarge("transaction", limit))
	case locks && h.transaction.keys > limits.LockKeys:
		return h.reached(config.LimitLockKeys, wire.ErrLockKeys)
	case !h.reserve(memory):
		return wire.ErrMemory
	}
	return ""
}

// reached counts that a limit was reached, and returns the refusal.
func (h *Handler) reached(limit config.LimitName, refusal wire.Error) wire.Error {
	h.Env.Metrics.LimitReached(string(limit))
	return refusal
}

// executeHere performs EXEC while the upstream does not have the transaction. If no command
// had a key, the watched keys decide the plane.
func (h *Handler) executeHere(cmd wire.Command) {
	t := &h.transaction
	switch {
	case t.State == route.Aborted:
		h.refuseTransaction(wire.ErrExecAbort)
	case t.State == route.AtLocks:
		h.executeOnLocks()
	case len(h.watched.locks) > 0 && len(cmd.Args) > 1:
		h.refuseTransaction(wire.ErrCrossLock)
	case len(h.watched.locks) > 0:
		if refusal := t.RefusesLocks(h.watched.offLocks(h.client.DB)); refusal != "" {
			h.refuseTransaction(refusal)
			return
		}
		h.executeOnLocks()
	case len(t.calls) == 0 && len(cmd.Args) == 1 && h.Upstream() == nil:
		h.leaveTransaction("*0\r\n")
	default:
		h.executeKeyless(cmd)
	}
}

// leaveTransaction ends a transaction that the upstream does not have, and answers text. It
// also ends the upstream's WATCH, as EXEC and DISCARD do.
func (h *Handler) leaveTransaction(text string) {
	if h.endedTransaction() {
		h.Reply(text)
	}
}

// refuseTransaction is leaveTransaction with an error as the reply.
func (h *Handler) refuseTransaction(refusal wire.Error) {
	if h.endedTransaction() {
		h.ReplyError(refusal)
	}
}

// endedTransaction ends the transaction and the upstream's WATCH. It returns false if the
// session has ended.
func (h *Handler) endedTransaction() bool {
	if !h.Settle() {
		return false
	}
	if h.watched.upstream {
		h.Insert(resp.AppendCommand(nil, "UNWATCH"), upstream.Expectation{To: upstream.ToNobody, Count: 1})
	}
	h.endTransaction()
	return true
}

func (h *Handler) endTransaction() {
	h.forgetQueued()
	h.forgetWatched()
	h.transaction = transaction{}
}

func (h *Handler) forgetQueued() {
	h.Env.Budget.Release(h.transaction.bytes)
	h.transaction.calls, h.transaction.bytes = nil, 0
}

// abort refuses a command. An open transaction is then aborted, too. If the command is EXEC, the
// transaction ends, as in Redis.
func (h *Handler) abort(refusal wire.Error) {
	if h.InPipe() {
		h.ReplyAtOnce(string(refusal))
		return
	}
	if !h.Settle() {
		return
	}
	if h.transaction.State == route.AtUpstream {
		h.Insert(resp.AppendCommand(nil, "DISCARD"), upstream.Expectation{To: upstream.ToNobody, Count: 1})
		h.watched.upstream = false
	}
	if h.inTransaction() {
		h.forgetQueued()
		h.transaction = transaction{Transaction: route.Transaction{State: route.Aborted}}
		if refusal != "" && h.spec.Is(command.Conditions) {
			h.refuseTransaction(refusal.Refusing("exec"))
			return
		}
	}
	h.ReplyError(refusal)
}
