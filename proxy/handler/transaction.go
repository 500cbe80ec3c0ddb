package handler

import (
	"bytes"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// These are rough sizes of what a queued command takes in addition to its bytes.
const (
	queuedOverhead   = 200
	argumentOverhead = 32
)

// database returns the database of the next command's keys.
func (h *Handler) database() int { return h.multi.database(h.client.DB) }

func (h *Handler) inTransaction() bool { return h.multi.state != outside }

// performMulti performs MULTI outside a transaction. The proxy answers it, because the plane is not known yet.
func (h *Handler) performMulti(_ string, cmd wire.Command, _ route.Route) {
	h.multi.state, h.multi.name = held, bytes.Clone(cmd.Args[0])
	h.awaitInvalidations()
	h.Reply(wire.OK)
}

// performStray refuses EXEC or DISCARD without MULTI.
func (h *Handler) performStray(name string, cmd wire.Command, _ route.Route) {
	refusal := wire.ErrDiscardNoMulti
	switch {
	case len(cmd.Args) > 1:
		refusal = wire.ErrArity(name)
	case name == "exec":
		refusal = wire.ErrExecNoMulti
	}
	h.replyUnlessRestricted(name, cmd.Args, refusal)
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
	default:
		h.stepTransaction(name, cmd, to)
	}
}

// stepTransaction does what the machine says about a command.
func (h *Handler) stepTransaction(name string, cmd wire.Command, to route.Route) {
	m := &h.multi
	step, refusal := m.next(multiCommand{
		name: name, args: cmd.Args, to: to, db: h.client.DB, generation: h.Env.Active.Load().Router.Generation,
		subscribes: h.subscribesToLocks(name, cmd.Args), connected: h.Upstream() != nil,
	})
	switch step {
	case keep:
		h.keep(name, cmd, to)
	case check:
		h.Reply(wire.Queued)
	case sendHeld:
		if h.sendHeld(cmd) {
			h.stepTransaction(name, cmd, to)
		}
	case forward:
		h.noteLocking(cmd.Args, &to, h.service.Scripts.Learn(name, cmd.Args))
		m.place(name, cmd.Args, to)
		h.relay(cmd, upstream.Expectation{Count: 1})
	case forwardRefused:
		h.relay(cmd, upstream.Expectation{Count: 1})
	case forwardUncounted:
		if h.Settle() {
			h.endTransaction()
			h.relay(cmd, upstream.Expectation{Kind: upstream.Stream})
		}
	case execLocks:
		h.executeOnLocks()
	case execHeld:
		h.executeHeld(cmd)
	case execUpstream:
		h.executeUpstream(cmd)
	case execNothing:
		h.leaveTransaction("*0\r\n")
	case discard:
		h.leaveTransaction(wire.OK)
	case discardUpstream:
		h.endTransaction()
		h.relay(cmd, upstream.Expectation{Count: 1})
	case refuse:
		h.ReplyError(refusal)
	case abort:
		h.abort(refusal)
	case end:
		h.refuseTransaction(refusal)
	}
}

// keep keeps a copy of a command for EXEC, and answers QUEUED.
func (h *Handler) keep(name string, cmd wire.Command, to route.Route) {
	m := &h.multi
	if limit, refusal := m.grow(len(cmd.Raw), len(to.Keys), &h.Env.Active.Load().Limits); refusal != "" {
		h.abort(h.reached(limit, refusal))
		return
	}
	memory := len(cmd.Raw) + queuedOverhead + len(cmd.Args)*argumentOverhead
	if !h.reserve(memory) {
		h.abort(wire.ErrMemory)
		return
	}
	m.memory += memory
	args := cmd.CloneArgs()
	m.calls = append(m.calls, lock.Command{DB: h.client.DB, Args: args, Route: to, Client: h, From: h.entry})
	m.place(name, args, to)
	h.awaitInvalidations()
	h.Reply(wire.Queued)
}

// reached counts that a limit was reached, and returns the refusal.
func (h *Handler) reached(limit config.LimitName, refusal wire.Error) wire.Error {
	h.Env.Metrics.LimitReached(string(limit))
	return refusal
}

// sendHeld sends the upstream what is held, before the command that decided the plane. It returns false if
// that is refused.
func (h *Handler) sendHeld(cmd wire.Command) bool {
	if !h.Settle() {
		return false
	}
	if refusal := h.tryOpenFor(cmd); refusal != "" {
		h.abort(refusal)
		return false
	}
	h.insertHeld(upstream.ToNobody)
	return true
}

// insertHeld makes the transaction the upstream's.
func (h *Handler) insertHeld(to upstream.Destination) {
	text, count := h.multi.commands()
	h.forgetHeld()
	h.multi.state = atUpstream
	h.sendCaching()
	h.Insert(text, upstream.Expectation{To: to, Count: count})
}

// executeHeld performs EXEC on the upstream if no command had a key. The upstream gets
// the commands only now, but the client has already got QUEUED for each of them. If the
// upstream refuses one, EXEC's error says why, as Redis does for a refusal at EXEC.
func (h *Handler) executeHeld(cmd wire.Command) {
	if !h.Settle() {
		return
	}
	if refusal := h.TryOpen(); refusal != "" {
		h.endTransaction()
		h.ReplyError(refusal)
		return
	}
	h.insertHeld(upstream.ToOwner)
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
	reply, ok := h.Ask(cmd.Raw)
	if !ok {
		return
	}
	if wire.Error(reply) == wire.ErrExecAbort {
		reply = append([]byte(wire.ErrExecAbortOf), refused[1:]...)
	}
	h.ReplyBytes(reply)
}

// executeUpstream performs EXEC on the upstream. The proxy collects and reads the reply only
// if the transaction has a SELECT.
func (h *Handler) executeUpstream(cmd wire.Command) {
	selects := h.multi.selects
	h.endTransaction()
	if len(selects) == 0 {
		h.relay(cmd, upstream.Expectation{Count: 1})
		return
	}
	h.Insert(cmd.Raw, upstream.Expectation{To: upstream.ToOwner, Count: 1})
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
	h.client.DB = databaseAfter(selects, h.client.DB, elements)
	h.ReplyBytes(reply)
}

// selectAgain is called after an EXEC whose reply was too large to keep, so that its
// database is unknown. It sends the SELECTs again; they lead to the same database.
func (h *Handler) selectAgain(selects []queuedSelect) {
	for _, selected := range selects {
		reply, ok := h.Ask(wire.SelectCommand(selected.db))
		if !ok {
			return
		}
		if reply[0] == '+' {
			h.client.DB = selected.db
		}
	}
}

// executeOnLocks performs EXEC on the masters. They run the whole transaction as one script.
func (h *Handler) executeOnLocks() {
	if !h.Settle() {
		return
	}
	m := &h.multi
	t := lock.Transaction{DB: h.client.DB, Commands: m.calls, Watches: m.watched.locks, Leases: h.holder(), Version: h.client.Version}
	copies, ok := h.holdCopies(m.memory)
	if !ok {
		h.refuseTransaction(wire.ErrMemory)
		return
	}
	defer h.Env.Budget.Release(copies)
	for i := range t.Commands {
		t.Commands[i].Version = t.Version
	}
	h.busyOnLocks(func() {
		h.trackLocks(t.Commands...)
		h.lockReply = h.service.Locks.Exec(h.Context(), h.lockReply[:0], t)
	})
	h.leaveTransaction(string(h.lockReply))
}

// leaveTransaction ends a transaction, and answers text.
func (h *Handler) leaveTransaction(text string) {
	if h.leftTransaction() {
		h.Reply(text)
	}
}

// refuseTransaction is leaveTransaction with an error as the reply.
func (h *Handler) refuseTransaction(refusal wire.Error) {
	if h.leftTransaction() {
		h.ReplyError(refusal)
	}
}

// leftTransaction ends a transaction, also at the upstream, and the upstream's WATCH, as EXEC and DISCARD do.
// It returns false if the session has ended.
func (h *Handler) leftTransaction() bool {
	if !h.Settle() {
		return false
	}
	h.endAtUpstream()
	if h.multi.watched.upstream {
		h.Insert(resp.AppendCommand(nil, "UNWATCH"), upstream.Expectation{To: upstream.ToNobody, Count: 1})
	}
	h.endTransaction()
	return true
}

// endAtUpstream ends a transaction that the upstream has.
func (h *Handler) endAtUpstream() {
	if h.multi.state == atUpstream {
		h.Insert(resp.AppendCommand(nil, "DISCARD"), upstream.Expectation{To: upstream.ToNobody, Count: 1})
		h.multi.watched.upstream = false
	}
}

func (h *Handler) endTransaction() {
	h.forgetHeld()
	h.forgetWatched()
	h.multi = multi{}
}

func (h *Handler) forgetHeld() {
	h.Env.Budget.Release(h.multi.memory)
	h.multi.calls, h.multi.memory = nil, 0
}

func (h *Handler) forgetWatched() {
	h.Env.Budget.Release(h.multi.watched.memory)
	h.multi.watched = watched{}
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
	if h.inTransaction() {
		h.endAtUpstream()
		h.forgetHeld()
		h.multi = multi{state: aborted, generation: h.multi.generation, watched: h.multi.watched}
		if refusal != "" && h.spec.Load().Is(route.Conditions) {
			h.refuseTransaction(refusal.Refusing("exec"))
			return
		}
	}
	h.ReplyError(refusal)
}

// performWatch performs WATCH on lock keys: it reads their values on the masters.
func (h *Handler) performWatch(cmd wire.Command, spec *route.Spec) {
	if !h.mayAnswer("watch", cmd.Args, spec) {
		return
	}
	w := &h.multi.watched
	if len(w.locks) > 0 && w.db != h.client.DB {
		h.ReplyError(wire.ErrWatchDatabase)
		return
	}
	var look *redlock.Watch
	var refusal wire.Error
	h.busyOnLocks(func() { look, refusal = h.service.Locks.Watch(h.Context(), h.client.DB, cmd.Args[1:]) })
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	size := look.Size()
	if int64(size+w.memory) > h.Env.Active.Load().Limits.LockCommand {
		h.ReplyError(h.reached(config.LimitLockCommand, wire.ErrTooLarge("content of the watched keys", config.LimitLockCommand)))
		return
	}
	if !h.reserve(size) {
		h.ReplyError(wire.ErrMemory)
		return
	}
	w.locks, w.db, w.memory = append(w.locks, look), h.client.DB, w.memory+size
	h.Reply(wire.OK)
}

// performUnwatch performs UNWATCH on both planes. It does not open an upstream connection,
// because a closed one watches nothing.
func (h *Handler) performUnwatch(_ string, cmd wire.Command, to route.Route) {
	refusal := to.Spec.Check(cmd.Args)
	if refusal == "" {
		h.forgetWatched()
	}
	switch {
	case h.Upstream() != nil:
		h.relay(cmd, upstream.Expectation{Count: 1})
	case refusal != "":
		h.ReplyError(refusal)
	default:
		h.Reply(wire.OK)
	}
}
