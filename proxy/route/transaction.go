package route

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/wire"
)

// A Transaction decides which plane runs the commands between MULTI and EXEC. The first
// command with a key decides. It holds no command: the caller queues them. The zero value
// is no transaction.
type Transaction struct {
	State    TransactionState
	offLocks wire.Error // why a queued command cannot run on the masters; may be ""
	position int        // the index of the next command in EXEC's reply
	selects  []queuedSelect
}

// TransactionState says who has a transaction's commands.
type TransactionState uint8

const (
	NoTransaction TransactionState = iota
	Held                           // nothing is sent yet; the caller queues commands without keys
	AtUpstream                     // the upstream has the transaction, and gets each following command
	AtLocks                        // the caller queues all commands until EXEC
	Aborted                        // a command was refused; the following ones are only checked, and EXEC fails
)

// queuedSelect is a SELECT that applies if EXEC's reply has +OK at its position.
type queuedSelect struct{ position, db int }

// A Step says what to do with a command in a transaction that the upstream does not have.
type Step uint8

const (
	Queue      Step = iota // keep it, call Queued, and answer QUEUED
	Check                  // answer QUEUED, but do not keep it
	ToUpstream             // send the upstream the transaction, and then this command
	Execute                // perform EXEC
	Discard                // perform DISCARD
	Refuse                 // answer with the error; the transaction goes on
	Abort                  // answer with the error and abort the transaction
	End                    // answer with the error and end the transaction
)

// Next decides about a command other than QUIT and RESET. offLocks says why the watched keys
// keep the transaction off the masters, or is "". Next makes a held transaction one on lock
// keys if the command decides that.
func (t *Transaction) Next(name string, args [][]byte, to Route, offLocks wire.Error) (do Step, refusal wire.Error) {
	if refusal = to.Spec.Check(args); refusal != "" && name != "exec" {
		return Abort, refusal
	}
	switch {
	case name == "exec" && t.State == AtLocks && len(to.Keys) > 0 && !to.malformed:
		return End, wire.ErrCrossLock // conditions on the upstream's keys
	case name == "exec" && t.State != Held && refusal != "":
		return End, refusal
	case name == "exec": // with arguments, too: the upstream may know what they mean
		return Execute, ""
	case name == "discard":
		return Discard, ""
	case name == "multi":
		return Refuse, wire.ErrNestedMulti
	case name == "watch":
		return Refuse, wire.ErrWatchInMulti
	case to.Spec.NoMulti() || wire.LogsIn(name, args):
		return Abort, wire.ErrNotInMulti
	case t.State == Aborted:
		return Check, ""
	case to.Plane == Split || to.Plane == Cross:
		return Abort, wire.ErrCrossLock
	case t.State == AtLocks || to.Plane == Locks:
		return t.nextOnLocks(name, to, offLocks)
	case len(to.Keys) > 0 || to.Spec.Is(command.Uncountable):
		return ToUpstream, ""
	}
	return Queue, ""
}

func (t *Transaction) nextOnLocks(name string, to Route, offLocks wire.Error) (do Step, refusal wire.Error) {
	refusal = refusedOnLocks(name, to)
	if refusal == "" && t.State == Held {
		refusal = t.RefusesLocks(offLocks)
	}
	if refusal != "" {
		return Abort, refusal
	}
	t.State = AtLocks
	return Queue, ""
}

// RefusesLocks returns the reason why the queued commands cannot run on the masters. If there
// is none, it returns offLocks, which says the same of the watched keys.
func (t *Transaction) RefusesLocks(offLocks wire.Error) wire.Error {
	if t.offLocks != "" {
		return t.offLocks
	}
	return offLocks
}

// refusedOnLocks returns the reason why a command cannot be in a transaction on lock keys,
// or "" if it can.
func refusedOnLocks(name string, to Route) wire.Error {
	switch {
	case len(to.Keys) > 0 && to.Plane == Upstream:
		return wire.ErrCrossLock
	case to.Spec.Is(command.NeverOnLocks):
		return wire.ErrNotOnLockKeys(name)
	case len(to.Keys) == 0 && to.Plane == Upstream && !to.Spec.Is(command.OnMasters):
		return wire.ErrNotWithLockKeys(name)
	}
	return ""
}

// Queued counts a command that has its place in EXEC's reply, and remembers a SELECT.
func (t *Transaction) Queued(name string, args [][]byte, to Route) {
	if t.offLocks == "" {
		t.offLocks = refusedOnLocks(name, to)
	}
	if name == "select" && len(args) == 2 {
		if db, refusal := wire.ParseDatabase(args[1]); refusal == "" {
			t.selects = append(t.selects, queuedSelect{t.position, db})
		}
	}
	t.position++
}

// StrayExec is the error for EXEC or DISCARD without MULTI.
func StrayExec(name string, args [][]byte) wire.Error {
	switch {
	case len(args) > 1:
		return wire.ErrArity(name)
	case name == "exec":
		return wire.ErrExecNoMulti
	}
	return wire.ErrDiscardNoMulti
}

// Len returns the number of commands since MULTI. It returns -1 if there is no transaction.
func (t *Transaction) Len() int {
	if t.State == NoTransaction {
		return -1
	}
	return t.position
}

// Database returns the database of the next command's keys. db is the session's.
func (t *Transaction) Database(db int) int {
	if n := len(t.selects); n > 0 {
		return t.selects[n-1].db
	}
	return db
}

// Selects returns the databases of the queued SELECTs, in their order.
func (t *Transaction) Selects() []int {
	var list []int
	for _, selected := range t.selects {
		list = append(list, selected.db)
	}
	return list
}

// DatabaseAfter returns the session's database after an EXEC with these replies. db is the
// database before.
func (t *Transaction) DatabaseAfter(db int, replies [][]byte) int {
	for _, selected := range t.selects {
		if selected.position < len(replies) && replies[selected.position][0] == '+' {
			db = selected.db
		}
	}
	return db
}
