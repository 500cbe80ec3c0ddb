package handler

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// onLocks is the router of these tests.
var onLocks = &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}}

// A multiClient gives a multi commands as transaction.go does, but without a limit.
type multiClient struct {
	multi
	db         int
	connected  bool
	generation int
}

// says gives it one command, and returns what became of that.
func (c *multiClient) says(text string) (step multiStep, refusal wire.Error) {
	var args [][]byte
	for word := range strings.FieldsSeq(text) {
		args = append(args, []byte(word))
	}
	to := onLocks.Route(c.database(c.db), args)
	name := ""
	if to.Spec != nil {
		name = to.Spec.Name
	}
	next := func() {
		step, refusal = c.next(multiCommand{name: name, args: args, to: to, db: c.db, generation: c.generation, connected: c.connected})
	}
	if next(); step == sendHeld {
		c.state = atUpstream
		next()
	}
	if step == keep || step == forward {
		c.place(name, args, to)
	}
	return step, refusal
}

// Each line is what a client sends after MULTI, and what becomes of the last command.
func TestTransactionDecides(t *testing.T) {
	for _, c := range []struct {
		commands string
		watched  watched
		want     multiStep
		refusal  wire.Error
		state    multiState
	}{
		{commands: "PING", want: keep, state: held},
		{commands: "GET a", want: forward, state: atUpstream},
		{commands: "CLIENT ID", want: forwardUncounted, state: atUpstream},
		{commands: "MONITOR", want: forwardUncounted, state: atUpstream},
		{commands: "NOSUCH", want: forward, state: atUpstream},
		{commands: "GET lock:a", want: keep, state: atLocks},
		{commands: "PING; GET lock:a", want: keep, state: atLocks},
		{commands: "SELECT 3; GET lock:a", want: abort, refusal: wire.ErrNotWithLockKeys("select"), state: held},
		{commands: "GET lock:a; GET a", want: abort, refusal: wire.ErrCrossLock, state: atLocks},
		{commands: "GET lock:a; DBSIZE", want: abort, refusal: wire.ErrNotWithLockKeys("dbsize"), state: atLocks},
		{commands: "GET lock:a; NOSUCH", want: abort, refusal: wire.ErrUnknownCommand([][]byte{[]byte("NOSUCH")}), state: atLocks},
		{commands: "GET lock:a", watched: watched{locks: []*redlock.Watch{{}}, db: 1}, want: abort, refusal: wire.ErrWatchDatabase, state: held},
		{commands: "GET lock:a", watched: watched{upstream: true}, want: abort, refusal: wire.ErrCrossLock, state: held},
		{commands: "GET a", watched: watched{locks: []*redlock.Watch{{}}}, want: abort, refusal: wire.ErrCrossLock, state: held},
		{commands: "PING", watched: watched{locks: []*redlock.Watch{{}}, db: 1}, want: keep, state: held},
		{commands: "MGET a lock:a", want: abort, refusal: wire.ErrCrossLock, state: held},
		{commands: "FCALL f 1 lock:a", want: abort, refusal: wire.ErrNotOnLockKeys("fcall"), state: held},
		{commands: "MULTI", want: refuse, refusal: wire.ErrNestedMulti, state: held},
		{commands: "WATCH a", want: refuse, refusal: wire.ErrWatchInMulti, state: held},
		{commands: "AUTH x", want: abort, refusal: wire.ErrNotInMulti, state: held},
		{commands: "GET", want: abort, refusal: wire.ErrArity("get"), state: held},
		{commands: "GET lock:a; OBJECT nosuch lock:a", want: abort, refusal: wire.ErrUnknownSubcommand([][]byte{[]byte("OBJECT"), []byte("nosuch")}), state: atLocks},
		{commands: "GET a; MULTI", want: forwardRefused, state: atUpstream},
		{commands: "GET a; WATCH b", want: forwardRefused, state: atUpstream},
		{commands: "GET a; AUTH x", want: abort, refusal: wire.ErrNotInMulti, state: atUpstream},
		{commands: "GET a; GET lock:a", want: abort, refusal: wire.ErrCrossLock, state: atUpstream},
		{commands: "EXEC", want: execNothing, state: held},
		{commands: "EXEC", watched: watched{locks: []*redlock.Watch{{}}}, want: execLocks, state: held},
		{commands: "EXEC 1", watched: watched{locks: []*redlock.Watch{{}}}, want: end, refusal: wire.ErrCrossLock, state: held},
		{commands: "PING; EXEC", watched: watched{locks: []*redlock.Watch{{}}, db: 1}, want: end, refusal: wire.ErrWatchDatabase, state: held},
		{commands: "SELECT 3; EXEC", watched: watched{locks: []*redlock.Watch{{}}}, want: end, refusal: wire.ErrNotWithLockKeys("select"), state: held},
		{commands: "EXEC 1", want: execHeld, state: held},
		{commands: "PING; EXEC IFEQ a v", want: execHeld, state: held},
		{commands: "GET lock:a; EXEC", want: execLocks, state: atLocks},
		{commands: "GET lock:a; EXEC 1", want: end, refusal: wire.ErrArity("exec"), state: atLocks},
		{commands: "GET lock:a; EXEC NX a", want: end, refusal: wire.ErrCrossLock, state: atLocks},
		{commands: "GET lock:a; EXEC NX lock:a", want: abort, refusal: wire.ErrExecCondition, state: atLocks},
		{commands: "GET a; EXEC", want: execUpstream, state: atUpstream},
		{commands: "GET a; EXEC NX a", want: execUpstream, state: atUpstream},
		{commands: "DISCARD", want: discard, state: held},
		{commands: "GET lock:a; DISCARD", want: discard, state: atLocks},
		{commands: "GET a; DISCARD", want: discardUpstream, state: atUpstream},
		{commands: "GET a; DISCARD 1", want: forward, state: atUpstream},
	} {
		client := multiClient{multi: multi{state: held, watched: c.watched}}
		var step multiStep
		var refusal wire.Error
		for text := range strings.SplitSeq(c.commands, "; ") {
			if step, refusal = client.says(text); step == keep {
				client.calls = append(client.calls, lock.Command{})
			}
		}
		if step != c.want || refusal != c.refusal || client.state != c.state {
			t.Errorf("%s: step %d, error %q, state %d, want %d, %q, %d", c.commands, step, refusal, client.state, c.want, c.refusal, c.state)
		}
	}
}

// A transaction whose commands may have changed planes meanwhile is not run.
func TestTransactionOfOtherRules(t *testing.T) {
	for _, state := range []multiState{held, atUpstream, atLocks, aborted} {
		client := multiClient{multi: multi{state: state}, generation: 1}
		if step, refusal := client.says("EXEC"); step != end || refusal != wire.ErrExecRules {
			t.Errorf("state %d: step %d, error %q", state, step, refusal)
		}
	}
}

// An aborted transaction checks commands and keeps none.
func TestAbortedTransactionChecks(t *testing.T) {
	client := multiClient{multi: multi{state: aborted}}
	for text, want := range map[string]multiStep{"GET a": check, "GET lock:a": check, "GET": abort, "NOSUCH": abort, "DISCARD": discard, "EXEC": end} {
		if step, _ := client.says(text); step != want || client.state != aborted {
			t.Errorf("%s: step %d, not %d", text, step, want)
		}
	}
	if _, refusal := client.says("EXEC"); refusal != wire.ErrExecAbort {
		t.Errorf("EXEC: %q", refusal)
	}
}

// Watched keys count like queued commands, and one without a key like one with one.
func TestTransactionsAreBounded(t *testing.T) {
	limits := &config.Limits{Transaction: 100, LockCommand: 50, LockKeys: 2}
	for _, row := range []struct {
		multi
		size, keys int
		want       config.LimitName
	}{
		{multi{state: held}, 100, 0, ""},
		{multi{state: held}, 101, 0, config.LimitTransaction},
		{multi{state: held, watched: watched{locks: []*redlock.Watch{{}}, memory: 10}}, 40, 0, ""},
		{multi{state: held, watched: watched{locks: []*redlock.Watch{{}}, memory: 10}}, 41, 0, config.LimitLockCommand},
		{multi{state: atLocks}, 51, 1, config.LimitLockCommand},
		{multi{state: atLocks, keys: 1}, 1, 0, ""},
		{multi{state: atLocks, keys: 2}, 1, 0, config.LimitLockKeys},
		{multi{state: held, keys: 2}, 1, 1, ""},
	} {
		if got, refusal := row.grow(row.size, row.keys, limits); got != row.want || (refusal == "") != (row.want == "") {
			t.Errorf("%+v: limit %q, error %q", row, got, refusal)
		}
	}
}

// The SELECTs of a transaction count only if EXEC's reply has OK in their places.
func TestDatabaseAfterTransaction(t *testing.T) {
	client := multiClient{multi: multi{state: atUpstream}}
	for _, text := range []string{"PING", "SELECT 3", "SELECT 99", "SELECT x"} {
		client.says(text)
	}
	if db := client.database(7); db != 99 {
		t.Errorf("the next command is in database %d", db)
	}
	replies := func(texts ...string) (list [][]byte) {
		for _, text := range texts {
			list = append(list, []byte(text))
		}
		return list
	}
	if db := databaseAfter(client.selects, 7, replies("+PONG", "+OK", "-ERR DB index is out of range", "-ERR")); db != 3 {
		t.Errorf("database %d after EXEC", db)
	}
	if db := databaseAfter(client.selects, 7, nil); db != 7 {
		t.Errorf("database %d after an EXEC without replies", db)
	}
}
