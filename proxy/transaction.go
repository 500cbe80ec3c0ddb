package proxy

import (
	"bytes"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A transaction is what stands between MULTI and EXEC. MULTI is answered here,
// for nobody knows yet whose it is: the first command with a key decides.
//
//	held      nothing sent yet; commands without keys are queued here
//	upstream  the upstream has the transaction, and is sent all that follows
//	locks     everything is queued here until EXEC
//	aborted   a command was refused: the rest is checked and queued for show,
//	          and EXEC aborts
type transaction struct {
	state    transactionState
	multi    []byte     // how the client spelled it, for who watches the upstream
	calls    []lockCall // queued here, with copies of their arguments
	bytes    int        // what calls take of the server's memory
	position int        // of the next command in EXEC's reply
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

// queuedSelect is a SELECT that holds once EXEC's reply says +OK in its place.
type queuedSelect struct{ position, db int }

// What a queued command takes beside its bytes, roughly.
const (
	queuedOverhead   = 200
	argumentOverhead = 32
)

// database is the one in which the next command's keys are.
func (s *session) database() int {
	if n := len(s.transaction.selects); n > 0 {
		return s.transaction.selects[n-1].db
	}
	return s.client.db
}

// performMulti begins a transaction.
func (s *session) performMulti(cmd wire.Command, spec *command.Spec) {
	if !s.settle() || s.refusedAsRestricted("multi") {
		return
	}
	if !spec.ArityOK(len(cmd.Args)) {
		s.reply(wire.ErrArity("multi"))
		return
	}
	s.transaction.state, s.transaction.multi = transactionHeld, bytes.Clone(cmd.Args[0])
	s.hearUpstream()
	s.reply(wire.OK)
}

// performStrayExec answers EXEC and DISCARD without MULTI.
func (s *session) performStrayExec(name string, cmd wire.Command) {
	switch {
	case name == "exec" && len(cmd.Args) > 1:
		s.replyUnlessRestricted(name, wire.ErrExecArity)
	case name == "exec":
		s.replyUnlessRestricted(name, wire.ErrExecNoMulti)
	case len(cmd.Args) > 1:
		s.replyUnlessRestricted(name, wire.ErrArity(name))
	default:
		s.replyUnlessRestricted(name, wire.ErrDiscardNoMulti)
	}
}

// performInTransaction takes every command from MULTI to its end.
func (s *session) performInTransaction(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "quit":
		s.reply(wire.OK)
		s.closing = true
	case name == "reset" && len(cmd.Args) == 1:
		if s.settle() {
			s.reset()
		}
	case name == "exec" && s.era != s.server.settings().Router.Era:
		s.abort("") // the upstream, if it has the transaction, is told
		s.leaveTransaction(wire.ErrExecRules)
	case s.subscribesToLocks(name, cmd.Args):
		s.abort(wire.ErrSubscribeInMulti)
	case s.transaction.state == transactionUpstream:
		s.continueUpstream(name, cmd, to)
	case to.Spec == nil && s.transaction.state == transactionHeld && to.Plane == route.Upstream:
		// The upstream may have a module that knows it.
		s.decideUpstream(name, cmd, to)
	default:
		s.continueHere(name, cmd, to)
	}
}

// continueHere is performInTransaction while the upstream has no part in it.
func (s *session) continueHere(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "exec" && len(cmd.Args) > 1:
		s.leaveTransaction(wire.ErrExecArity)
	case to.Spec == nil || !to.Spec.ArityOK(len(cmd.Args)):
		s.abort(s.refusal(to.Spec, cmd.Args, ""))
	case name == "exec":
		s.executeHere(cmd, to)
	case name == "discard":
		s.leaveTransaction(wire.OK)
	case name == "multi":
		s.reply(wire.ErrNestedMulti)
	case name == "watch":
		s.reply(wire.ErrWatchInMulti)
	case to.Spec.NoMulti() || logsIn(name, cmd.Args):
		s.abort(wire.ErrNotInMulti)
	case s.transaction.state == transactionAborted:
		s.reply(wire.Queued)
	case to.Plane == route.Split || to.Plane == route.Cross:
		s.abort(wire.ErrCrossLock)
	case s.transaction.state == transactionLocks:
		if refusal := refusedOnLocks(name, to); refusal != "" {
			s.abort(refusal)
			return
		}
		s.queue(name, cmd, to)
	case to.Plane == route.Locks:
		s.decideLocks(name, cmd, to)
	case len(to.Keys) > 0 || to.Spec.Is(command.Uncountable):
		s.decideUpstream(name, cmd, to)
	default:
		s.queue(name, cmd, to)
	}
}

// decideLocks makes what was held a transaction on lock keys.
func (s *session) decideLocks(name string, cmd wire.Command, to route.Route) {
	refusal := refusedOnLocks(name, to)
	if refusal == "" {
		refusal = s.refusesLocks()
	}
	if refusal != "" {
		s.abort(refusal)
		return
	}
	s.transaction.state = transactionLocks
	s.queue(name, cmd, to)
}

func (s *session) queue(name string, cmd wire.Command, to route.Route) {
	t := &s.transaction
	size := len(cmd.Raw) + queuedOverhead + len(cmd.Args)*argumentOverhead
	if !s.mayHold(size) {
		s.abort(wire.ErrTransactionSize)
		return
	}
	t.bytes += size
	args := make([][]byte, len(cmd.Args))
	for i, arg := range cmd.Args {
		args[i] = bytes.Clone(arg)
	}
	t.calls = append(t.calls, lockCall{db: s.client.db, args: args, route: to})
	t.note(name, args)
	s.hearUpstream()
	s.reply(wire.Queued)
}

// hearUpstream has what the upstream has told of tracked keys come before a reply
// that is given here.
func (s *session) hearUpstream() {
	t := &s.tracking
	if t.mode == nil || t.mode.Redirected || t.caching || s.client.version == wire.RESP2 || s.upstream.Load() == nil || !s.settle() {
		return
	}
	_, _ = s.ask(resp.AppendCommand(nil, []byte("PING")))
}

// mayHold takes memory for one more part of a transaction: a queued command or
// what was seen of a watched key.
func (s *session) mayHold(size int) bool {
	reached := config.LimitTransaction
	if int64(s.transaction.bytes+s.watched.bytes+size) <= s.server.settings().Limits.Transaction {
		if s.server.memory.Reserve(size) {
			return true
		}
		reached = config.LimitMemory
	}
	s.server.cfg.metrics.LimitReached(string(reached))
	return false
}

// note counts a queued command's place in EXEC's reply.
func (t *transaction) note(name string, args [][]byte) {
	if name == "select" && len(args) == 2 {
		if db, refusal := databaseIndex(args[1]); refusal == "" {
			t.selects = append(t.selects, queuedSelect{t.position, db})
		}
	}
	t.position++
}

// executeHere is EXEC before the upstream has a part in it.
func (s *session) executeHere(cmd wire.Command, to route.Route) {
	switch s.transaction.state {
	case transactionAborted:
		s.leaveTransaction(wire.ErrExecAbort)
	case transactionLocks:
		s.executeOnLocks()
	default:
		s.executeUndecided(cmd, to)
	}
}

// executeUndecided is EXEC of no command with a key: what is watched decides.
func (s *session) executeUndecided(cmd wire.Command, to route.Route) {
	switch {
	case len(s.watched.locks) > 0:
		if refusal := s.refusesLocks(); refusal != "" {
			s.leaveTransaction(refusal)
			return
		}
		s.executeOnLocks()
	case len(s.transaction.calls) == 0 && s.upstream.Load() == nil:
		s.leaveTransaction("*0\r\n")
	default:
		s.executeKeyless(cmd)
	}
}

// leaveTransaction ends a transaction that the upstream has not seen. It ends
// the upstream's WATCH too, as EXEC and DISCARD do.
func (s *session) leaveTransaction(text string) {
	if !s.settle() {
		return
	}
	if s.watched.upstream {
		s.sendUnanswered(resp.AppendCommand(nil, []byte("UNWATCH")), 1)
	}
	s.endTransaction()
	s.reply(text)
}

func (s *session) endTransaction() {
	s.forgetQueued()
	s.forgetWatched()
	s.transaction = transaction{}
}

func (s *session) forgetQueued() {
	s.server.memory.Release(s.transaction.bytes)
	s.transaction.calls, s.transaction.bytes = nil, 0
}

// refuse is abort, also in a pipe.
func (s *session) refuse(text string) {
	if s.isPipe() {
		s.replyAtOnce(text)
		return
	}
	s.abort(text)
}

// abort refuses a command and with it the transaction, if there is one.
func (s *session) abort(text string) {
	if !s.settle() {
		return
	}
	if s.transaction.state == transactionUpstream {
		s.sendUnanswered(resp.AppendCommand(nil, []byte("DISCARD")), 1)
		s.watched.upstream = false
	}
	if s.transaction.state != transactionNone {
		s.forgetQueued()
		s.transaction = transaction{state: transactionAborted}
	}
	s.reply(text)
}

// sendUnanswered puts commands before the next that are forwarded; their
// replies are for nobody. Nothing is owed.
func (s *session) sendUnanswered(commands []byte, count int) {
	s.upstream.Load().owed.add(debt{silent: true, left: count})
	s.prefix = append(s.prefix, commands...)
}
