package handler

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
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
