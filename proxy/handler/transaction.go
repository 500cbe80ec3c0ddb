package handler

import (
	"bytes"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A transaction holds the commands between MULTI and EXEC. The proxy answers MULTI, because
// the plane is not known yet. The first command with a key decides the plane.
//
//	held      nothing is sent yet; commands without keys are queued here
//	upstream  the upstream has the transaction, and gets each following command
//	locks     all commands are queued here until EXEC
//	aborted   a command was refused; the following ones are checked and answered
//	          QUEUED, but not kept, and EXEC fails
type transaction struct {
	state    transactionState
	multi    []byte         // as the client spelled it, for a MONITOR on the upstream
	calls    []lock.Command // queued here, with copies of their arguments
	bytes    int            // the memory that calls take from the budget
	position int            // the index of the next command in EXEC's reply
	selects  []queuedSelect
}

type transactionState uint8

const (
	transactionNone transactionState = iota
	transactionHeld
	transactionUpstream
	transactionLocks
	transactionAborted
)

// queuedSelect is a SELECT that applies if EXEC's reply has +OK at its position.
type queuedSelect struct{ position, db int }

// These are rough sizes of what a queued command takes in addition to its bytes.
const (
	queuedOverhead   = 200
	argumentOverhead = 32
)

// database returns the database of the next command's keys.
func (h *handler) database() int {
	if n := len(h.transaction.selects); n > 0 {
		return h.transaction.selects[n-1].db
	}
	return h.client.db
}

// performMulti performs MULTI outside a transaction.
func (h *handler) performMulti(cmd wire.Command, spec *command.Spec) {
	if !h.Settle() || h.refusedAsRestricted("multi") {
		return
	}
	if !spec.ArityOK(len(cmd.Args)) {
		h.ReplyError(wire.ErrArity("multi"))
		return
	}
	h.transaction.state, h.transaction.multi = transactionHeld, bytes.Clone(cmd.Args[0])
	h.hearing.HearUpstream()
	h.Reply(wire.OK)
}

// performStrayExec refuses EXEC and DISCARD without MULTI.
func (h *handler) performStrayExec(name string, cmd wire.Command) {
	switch {
	case name == "exec" && len(cmd.Args) > 1:
		h.replyUnlessRestricted(name, wire.ErrExecArity)
	case name == "exec":
		h.replyUnlessRestricted(name, wire.ErrExecNoMulti)
	case len(cmd.Args) > 1:
		h.replyUnlessRestricted(name, wire.ErrArity(name))
	default:
		h.replyUnlessRestricted(name, wire.ErrDiscardNoMulti)
	}
}

// performInTransaction performs every command after MULTI, including EXEC and DISCARD.
func (h *handler) performInTransaction(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "quit":
		h.Reply(wire.OK)
		h.End(session.Quit)
	case name == "reset" && len(cmd.Args) == 1:
		if h.Settle() {
			h.reset()
		}
	case name == "exec" && h.era != h.Env.Active.Load().Router.Era:
		h.abort("") // this also sends DISCARD to an upstream that has the transaction
		h.refuseTransaction(wire.ErrExecRules)
	case h.hearing.SubscribesToLocks(name, cmd.Args):
		h.abort(wire.ErrSubscribeInMulti)
	case h.transaction.state == transactionUpstream:
		h.continueUpstream(name, cmd, to)
	case to.Spec == nil && h.transaction.state == transactionHeld && to.Plane == route.Upstream:
		// The upstream may have a module that knows the command.
		h.decideUpstream(name, cmd, to)
	default:
		h.continueHere(name, cmd, to)
	}
}

// continueHere is performInTransaction while the upstream does not have the transaction.
func (h *handler) continueHere(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "exec" && len(cmd.Args) > 1:
		h.refuseTransaction(wire.ErrExecArity)
	case to.Spec == nil || !to.Spec.ArityOK(len(cmd.Args)):
		h.abort(h.refusal(to.Spec, cmd.Args, ""))
	case name == "exec":
		h.executeHere(cmd, to)
	case name == "discard":
		h.leaveTransaction(wire.OK)
	case name == "multi":
		h.ReplyError(wire.ErrNestedMulti)
	case name == "watch":
		h.ReplyError(wire.ErrWatchInMulti)
	case to.Spec.NoMulti() || wire.LogsIn(name, cmd.Args):
		h.abort(wire.ErrNotInMulti)
	case h.transaction.state == transactionAborted:
		h.Reply(wire.Queued)
	case to.Plane == route.Split || to.Plane == route.Cross:
		h.abort(wire.ErrCrossLock)
	case h.transaction.state == transactionLocks:
		if refusal := refusedOnLocks(name, to); refusal != "" {
			h.abort(refusal)
			return
		}
		h.queue(name, cmd, to)
	case to.Plane == route.Locks:
		h.decideLocks(name, cmd, to)
	case len(to.Keys) > 0 || to.Spec.Is(command.Uncountable):
		h.decideUpstream(name, cmd, to)
	default:
		h.queue(name, cmd, to)
	}
}

// decideLocks makes the held transaction one on lock keys.
func (h *handler) decideLocks(name string, cmd wire.Command, to route.Route) {
	refusal := refusedOnLocks(name, to)
	if refusal == "" {
		refusal = h.refusesLocks()
	}
	if refusal != "" {
		h.abort(refusal)
		return
	}
	h.transaction.state = transactionLocks
	h.queue(name, cmd, to)
}

// queue keeps a copy of a command for EXEC, and answers QUEUED.
func (h *handler) queue(name string, cmd wire.Command, to route.Route) {
	t := &h.transaction
	size := len(cmd.Raw) + queuedOverhead + len(cmd.Args)*argumentOverhead
	if !h.mayHold(size) {
		h.abort(wire.ErrTransactionSize)
		return
	}
	t.bytes += size
	args := make([][]byte, len(cmd.Args))
	for i, arg := range cmd.Args {
		args[i] = bytes.Clone(arg)
	}
	t.calls = append(t.calls, lock.Command{DB: h.client.db, Args: args, Route: to, Client: h})
	t.note(name, args)
	h.hearing.HearUpstream()
	h.Reply(wire.Queued)
}

// mayHold takes memory for one more part of a transaction: a queued command or the value of
// a watched key. It returns false if a limit is reached.
func (h *handler) mayHold(size int) bool {
	reached := config.LimitTransaction
	if int64(h.transaction.bytes+h.watched.bytes+size) <= h.Env.Active.Load().Limits.Transaction {
		if h.Env.Budget.Reserve(size) {
			return true
		}
		reached = config.LimitMemory
	}
	h.Env.Metrics.LimitReached(string(reached))
	return false
}

// note counts a queued command's position in EXEC's reply, and remembers a SELECT.
func (t *transaction) note(name string, args [][]byte) {
	if name == "select" && len(args) == 2 {
		if db, refusal := wire.ParseDatabase(args[1]); refusal == "" {
			t.selects = append(t.selects, queuedSelect{t.position, db})
		}
	}
	t.position++
}

// executeHere performs EXEC while the upstream does not have the transaction.
func (h *handler) executeHere(cmd wire.Command, to route.Route) {
	switch h.transaction.state {
	case transactionAborted:
		h.refuseTransaction(wire.ErrExecAbort)
	case transactionLocks:
		h.executeOnLocks()
	default:
		h.executeUndecided(cmd, to)
	}
}

// executeUndecided performs EXEC if no command had a key. The watched keys decide the plane.
func (h *handler) executeUndecided(cmd wire.Command, to route.Route) {
	switch {
	case len(h.watched.locks) > 0:
		if refusal := h.refusesLocks(); refusal != "" {
			h.refuseTransaction(refusal)
			return
		}
		h.executeOnLocks()
	case len(h.transaction.calls) == 0 && h.Upstream() == nil:
		h.leaveTransaction("*0\r\n")
	default:
		h.executeKeyless(cmd)
	}
}

// leaveTransaction ends a transaction that the upstream does not have, and answers text. It
// also ends the upstream's WATCH, as EXEC and DISCARD do.
func (h *handler) leaveTransaction(text string) {
	if h.endedTransaction() {
		h.Reply(text)
	}
}

// refuseTransaction is leaveTransaction with an error as the reply.
func (h *handler) refuseTransaction(refusal wire.Error) {
	if h.endedTransaction() {
		h.ReplyError(refusal)
	}
}

// endedTransaction ends the transaction and the upstream's WATCH. It returns false if the
// session has ended.
func (h *handler) endedTransaction() bool {
	if !h.Settle() {
		return false
	}
	if h.watched.upstream {
		h.Insert(resp.AppendCommand(nil, []byte("UNWATCH")), 1)
	}
	h.endTransaction()
	return true
}

func (h *handler) endTransaction() {
	h.forgetQueued()
	h.forgetWatched()
	h.transaction = transaction{}
}

func (h *handler) forgetQueued() {
	h.Env.Budget.Release(h.transaction.bytes)
	h.transaction.calls, h.transaction.bytes = nil, 0
}

// refuse is abort, but works in a pipe too.
func (h *handler) refuse(refusal wire.Error) {
	if h.InPipe() {
		h.ReplyAtOnce(string(refusal))
		return
	}
	h.abort(refusal)
}

// abort refuses a command. An open transaction is then aborted, too.
func (h *handler) abort(refusal wire.Error) {
	if !h.Settle() {
		return
	}
	if h.transaction.state == transactionUpstream {
		h.Insert(resp.AppendCommand(nil, []byte("DISCARD")), 1)
		h.watched.upstream = false
	}
	if h.transaction.state != transactionNone {
		h.forgetQueued()
		h.transaction = transaction{state: transactionAborted}
	}
	h.ReplyError(refusal)
}
