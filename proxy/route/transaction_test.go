package route

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/wire"
)

// Each line is what a client sends after MULTI, and what becomes of the last command. The
// words before the last command are queued as Next says.
func TestTransactionDecides(t *testing.T) {
	router := &Router{Table: command.Builtin(), Rules: Rules{{Match: "lock:*", DB: AnyDB}}}
	for _, c := range []struct {
		commands string
		offLocks wire.Error
		want     Step
		refusal  wire.Error
		state    TransactionState
	}{
		{commands: "PING", want: Queue, state: Held},
		{commands: "GET a", want: ToUpstream, state: Held},
		{commands: "CLIENT ID", want: ToUpstream, state: Held},
		{commands: "GET lock:a", want: Queue, state: AtLocks},
		{commands: "PING; GET lock:a", want: Queue, state: AtLocks},
		{commands: "SELECT 3; GET lock:a", want: Abort, refusal: wire.ErrNotWithLockKeys("select"), state: Held},
		{commands: "GET lock:a; GET a", want: Abort, refusal: wire.ErrCrossLock, state: AtLocks},
		{commands: "GET lock:a; DBSIZE", want: Abort, refusal: wire.ErrNotWithLockKeys("dbsize"), state: AtLocks},
		{commands: "GET lock:a", offLocks: wire.ErrWatchDatabase, want: Abort, refusal: wire.ErrWatchDatabase, state: Held},
		{commands: "PING", offLocks: wire.ErrWatchDatabase, want: Queue, state: Held},
		{commands: "MGET a lock:a", want: Abort, refusal: wire.ErrCrossLock, state: Held},
		{commands: "FCALL f 1 lock:a", want: Abort, refusal: wire.ErrNotOnLockKeys("fcall"), state: Held},
		{commands: "MULTI", want: Refuse, refusal: wire.ErrNestedMulti, state: Held},
		{commands: "WATCH a", want: Refuse, refusal: wire.ErrWatchInMulti, state: Held},
		{commands: "AUTH x", want: Abort, refusal: wire.ErrNotInMulti, state: Held},
		{commands: "GET", want: Abort, refusal: wire.ErrArity("get"), state: Held},
		{commands: "NOSUCH", want: Abort, refusal: wire.ErrUnknownCommand([][]byte{[]byte("NOSUCH")}), state: Held},
		{commands: "GET lock:a; OBJECT nosuch lock:a", want: Abort, refusal: wire.ErrUnknownSubcommand([][]byte{[]byte("OBJECT"), []byte("nosuch")}), state: AtLocks},
		{commands: "EXEC", want: Execute, state: Held},
		{commands: "EXEC 1", want: Execute, state: Held},
		{commands: "PING; EXEC IFEQ a v", want: Execute, state: Held},
		{commands: "GET lock:a; EXEC", want: Execute, state: AtLocks},
		{commands: "GET lock:a; EXEC 1", want: End, refusal: wire.ErrArity("exec"), state: AtLocks},
		{commands: "GET lock:a; EXEC NX a", want: End, refusal: wire.ErrCrossLock, state: AtLocks},
		{commands: "DISCARD", want: Discard, state: Held},
	} {
		tx := Transaction{State: Held}
		var step Step
		var refusal wire.Error
		for _, text := range strings.Split(c.commands, "; ") {
			var args [][]byte
			for _, word := range strings.Fields(text) {
				args = append(args, []byte(word))
			}
			to := router.Route(tx.Database(0), args)
			name := ""
			if to.Spec != nil {
				name = to.Spec.Name
			}
			if step, refusal = tx.Next(name, args, to, c.offLocks); step == Queue {
				tx.Queued(name, args, to)
			}
		}
		if step != c.want || refusal != c.refusal || tx.State != c.state {
			t.Errorf("%s: step %d, error %q, state %d, want %d, %q, %d", c.commands, step, refusal, tx.State, c.want, c.refusal, c.state)
		}
	}
}

// An aborted transaction checks commands and keeps none.
func TestAbortedTransactionChecks(t *testing.T) {
	router := &Router{Table: command.Builtin()}
	tx := Transaction{State: Aborted}
	get := [][]byte{[]byte("GET"), []byte("a")}
	if step, refusal := tx.Next("get", get, router.Route(0, get), ""); step != Check || refusal != "" {
		t.Errorf("step %d, error %q", step, refusal)
	}
}

// The SELECTs of a transaction count only if EXEC's reply has OK in their places.
func TestDatabaseAfterTransaction(t *testing.T) {
	router := &Router{Table: command.Builtin()}
	tx := Transaction{State: AtUpstream}
	for _, text := range []string{"PING", "SELECT 3", "SELECT 99", "SELECT x"} {
		var args [][]byte
		for _, word := range strings.Fields(text) {
			args = append(args, []byte(word))
		}
		to := router.Route(0, args)
		tx.Queued(to.Spec.Name, args, to)
	}
	if db := tx.Database(7); db != 99 {
		t.Errorf("the next command is in database %d", db)
	}
	replies := func(texts ...string) (list [][]byte) {
		for _, text := range texts {
			list = append(list, []byte(text))
		}
		return list
	}
	if db := tx.DatabaseAfter(7, replies("+PONG", "+OK", "-ERR DB index is out of range", "-ERR")); db != 3 {
		t.Errorf("database %d after EXEC", db)
	}
	if db := tx.DatabaseAfter(7, nil); db != 7 {
		t.Errorf("database %d after an EXEC without replies", db)
	}
}
