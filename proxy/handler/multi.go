package handler

import (
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// A multi is the state of MULTI and WATCH. It does no I/O: next says what becomes of each command, and
// transaction.go does that. The first command with a key decides the plane:
//
//	outside --MULTI--> held --a key of the upstream--> atUpstream --+
//	                    |---- a lock key ------------> atLocks -----+--EXEC, DISCARD, RESET--> outside
//	                    any of them --a refusal------> aborted -----+
//
// The upstream gets each command as it comes. The masters get all of them at EXEC, as one request.
// The zero value is outside, without watched keys.
type multi struct {
	state      multiState
	generation int            // the router's, when MULTI or the first WATCH came
	name       []byte         // MULTI as the client spelled it, for a MONITOR on the upstream
	calls      []lock.Command // held here, with copies of their arguments
	memory     int            // what calls take from the budget
	size       int            // of the held commands as they came
	keys       int            // of the held commands; one without a key counts, too
	offLocks   wire.Error     // why a held command cannot run on the masters; may be ""
	queued     int            // commands that have a place in EXEC's reply
	selects    []queuedSelect
	watched    watched // what the next EXEC checks
}

// multiState says who has a transaction's commands.
type multiState uint8

const (
	outside    multiState = iota // there was no MULTI
	held                         // nothing is sent yet; commands without keys are kept
	atUpstream                   // the upstream has the transaction, and gets each following command
	atLocks                      // all commands are kept until EXEC
	aborted                      // a command was refused; the following ones are only checked, and EXEC fails
)

// watched are the keys of WATCH. They end with EXEC, DISCARD, UNWATCH and RESET.
type watched struct {
	locks    []*redlock.Watch
	db       int  // the database of locks
	memory   int  // what locks take from the budget
	upstream bool // the upstream watches keys of its own
}

func (w *watched) any() bool { return len(w.locks) > 0 || w.upstream }

// queuedSelect is a SELECT that applies if EXEC's reply has +OK at its place.
type queuedSelect struct{ place, db int }

// A multiStep says what to do with a command after MULTI.
type multiStep uint8

const (
	keep             multiStep = iota // keep the command, and answer QUEUED
	check                             // answer QUEUED
	sendHeld                          // send the upstream what is held, and ask next again
	forward                           // send the upstream the command, which has a place in EXEC's reply
	forwardRefused                    // send the upstream the command, which it will refuse
	forwardUncounted                  // the same for one that ends the transaction with a stream of replies
	execLocks                         // perform EXEC on the masters
	execHeld                          // send the upstream what is held, and EXEC
	execUpstream                      // send the upstream EXEC
	execNothing                       // answer EXEC of no commands
	discard                           // perform DISCARD
	discardUpstream                   // send the upstream DISCARD
	refuse                            // answer with the error; the transaction goes on
	abort                             // answer with the error and abort the transaction
	end                               // answer with the error and end the transaction
)

// A multiCommand is a command after MULTI, other than QUIT and RESET.
type multiCommand struct {
	name       string
	args       [][]byte
	to         route.Route
	db         int  // the client's
	generation int  // the router's
	subscribes bool // to channels of locks
	connected  bool // the client has an upstream connection of its own
}

// next decides about a command. It makes a held transaction one on lock keys if the command decides that.
func (m *multi) next(c multiCommand) (do multiStep, refusal wire.Error) {
	switch {
	case c.name == "exec" && c.generation != m.generation:
		return end, wire.ErrExecRules
	case c.name == "exec" && c.to.Plane != route.Upstream:
		return abort, wire.ErrExecCondition
	case c.subscribes:
		return abort, wire.ErrSubscribeInMulti
	case m.state == atUpstream:
		return m.nextAtUpstream(c)
	case c.to.Spec == nil && m.state == held: // the upstream may have a module that knows the command
		return m.toUpstream()
	case c.name == "exec":
		return m.exec(c)
	}
	if refusal = c.to.Spec.Check(c.args); refusal != "" {
		return abort, refusal
	}
	switch {
	case c.name == "discard":
		return discard, ""
	case c.name == "multi":
		return refuse, wire.ErrNestedMulti
	case c.name == "watch":
		return refuse, wire.ErrWatchInMulti
	case c.to.Spec.NoMulti() || wire.LogsIn(c.name, c.args):
		return abort, wire.ErrNotInMulti
	case m.state == aborted:
		return check, ""
	case c.to.Plane == route.Split || c.to.Plane == route.Cross:
		return abort, wire.ErrCrossLock
	case m.state == atLocks || c.to.Plane == route.Locks:
		if refusal = refusedOnLocks(c.name, c.to); refusal == "" && m.state == held {
			refusal = m.refusesLocks(c.db)
		}
		if refusal != "" {
			return abort, refusal
		}
		m.state = atLocks
		return keep, ""
	case len(c.to.Keys) > 0 || c.to.Spec.Is(route.Uncountable):
		return m.toUpstream()
	}
	return keep, ""
}

// nextAtUpstream is next once the upstream has the transaction.
func (m *multi) nextAtUpstream(c multiCommand) (do multiStep, refusal wire.Error) {
	switch {
	case c.name == "exec":
		return execUpstream, ""
	case c.name == "discard" && len(c.args) == 1:
		return discardUpstream, ""
	case c.name == "multi" || c.name == "watch":
		return forwardRefused, ""
	case wire.LogsIn(c.name, c.args):
		return abort, wire.ErrNotInMulti
	case c.to.Plane != route.Upstream:
		return abort, wire.ErrCrossLock
	case c.to.Spec.Is(route.Uncountable):
		return forwardUncounted, ""
	}
	return forward, ""
}

func (m *multi) toUpstream() (do multiStep, refusal wire.Error) {
	if len(m.watched.locks) > 0 {
		return abort, wire.ErrCrossLock
	}
	return sendHeld, ""
}

// exec is next for EXEC while the upstream does not have the transaction. If no command had a key, the watched
// keys decide the plane. It may have arguments that the upstream knows.
func (m *multi) exec(c multiCommand) (do multiStep, refusal wire.Error) {
	switch refusal = c.to.Spec.Check(c.args); {
	case m.state == atLocks && len(c.to.Keys) > 0 && !c.to.Malformed:
		return end, wire.ErrCrossLock // conditions on the upstream's keys
	case m.state != held && refusal != "":
		return end, refusal
	case m.state == aborted:
		return end, wire.ErrExecAbort
	case m.state == atLocks:
		return execLocks, ""
	case len(m.watched.locks) > 0 && len(c.args) > 1:
		return end, wire.ErrCrossLock
	case len(m.watched.locks) > 0:
		if refusal = m.refusesLocks(c.db); refusal != "" {
			return end, refusal
		}
		return execLocks, ""
	case len(m.calls) == 0 && len(c.args) == 1 && !c.connected:
		return execNothing, ""
	}
	return execHeld, ""
}

// refusesLocks returns the reason why the held commands or the watched keys keep the transaction off the
// masters, or "". db is the client's database.
func (m *multi) refusesLocks(db int) wire.Error {
	switch {
	case m.offLocks != "":
		return m.offLocks
	case m.watched.upstream:
		return wire.ErrCrossLock
	case len(m.watched.locks) > 0 && m.watched.db != db:
		return wire.ErrWatchDatabase
	}
	return ""
}

// refusedOnLocks returns the reason why a command cannot be in a transaction on lock keys,
// or "" if it can.
func refusedOnLocks(name string, to route.Route) wire.Error {
	switch {
	case len(to.Keys) > 0 && to.Plane == route.Upstream:
		return wire.ErrCrossLock
	case to.Spec.Is(route.NeverOnLocks):
		return wire.ErrNotOnLockKeys(name)
	case len(to.Keys) == 0 && to.Plane == route.Upstream && !to.Spec.Is(route.OnMasters):
		return wire.ErrNotWithLockKeys(name)
	}
	return ""
}

// grow counts the size and the keys of a command that is to be kept. If that exceeds a limit, it returns the
// limit and the error. Until a command decides the plane, the upstream may be the one to run the transaction.
func (m *multi) grow(size, keys int, limits *config.Limits) (limit config.LimitName, refusal wire.Error) {
	m.size, m.keys = m.size+size, m.keys+max(1, keys)
	most, limit := limits.Transaction, config.LimitTransaction
	if m.state == atLocks || len(m.watched.locks) > 0 {
		most, limit = limits.LockCommand, config.LimitLockCommand
	}
	switch {
	case int64(m.size+m.watched.memory) > most:
		return limit, wire.ErrTooLarge("transaction", limit)
	case m.state == atLocks && m.keys > limits.LockKeys:
		return config.LimitLockKeys, wire.ErrLockKeys
	}
	return "", ""
}

// place gives a command its place in EXEC's reply, and remembers a SELECT.
func (m *multi) place(name string, args [][]byte, to route.Route) {
	if m.offLocks == "" {
		m.offLocks = refusedOnLocks(name, to)
	}
	if name == "select" && len(args) == 2 {
		if db, refusal := wire.ParseDatabase(args[1]); refusal == "" {
			m.selects = append(m.selects, queuedSelect{m.queued, db})
		}
	}
	m.queued++
}

// commands are those that are held, beginning with MULTI, for the upstream, and their number.
func (m *multi) commands() (text []byte, count int) {
	text = resp.AppendCommand(nil, m.name)
	for _, call := range m.calls {
		text = resp.AppendCommand(text, call.Args...)
	}
	return text, 1 + len(m.calls)
}

// len returns the number of commands since MULTI. It returns -1 if there is no transaction.
func (m *multi) len() int {
	if m.state == outside {
		return -1
	}
	return m.queued
}

// database returns the database of the next command's keys. db is the client's.
func (m *multi) database(db int) int {
	if n := len(m.selects); n > 0 {
		return m.selects[n-1].db
	}
	return db
}

// databaseAfter returns the client's database after an EXEC with these replies. db is the
// database before.
func databaseAfter(selects []queuedSelect, db int, replies [][]byte) int {
	for _, selected := range selects {
		if selected.place < len(replies) && replies[selected.place][0] == '+' {
			db = selected.db
		}
	}
	return db
}
