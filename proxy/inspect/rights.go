package inspect

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// A user of a master may be forbidden commands that the proxy needs there. The
// question is put by queueing each command in a transaction: a server checks
// rights when it queues, and DISCARD then drops what was queued, so nothing is
// done and nothing needs the right to ask about rights.

// neededRight is a command that the proxy sends to masters of its own accord.
type neededRight struct {
	name  string // as ACL rules have it
	form  []any
	vital bool // without it the master cannot vote at all
}

var neededRights = []neededRight{
	{"get", []any{"GET", redlock.MarkerKey}, true},
	{"set", []any{"SET", redlock.MarkerKey, ""}, true},
	{"time", []any{"TIME"}, true},
	{"info", []any{"INFO", "server"}, true},
	{"client|id", []any{"CLIENT", "ID"}, true},
	{"eval", []any{"EVAL", "return 1", "1", redlock.MarkerKey}, true},
	{"evalsha", []any{"EVALSHA", strings.Repeat("0", 40), "1", redlock.MarkerKey}, false},
	{"script|load", []any{"SCRIPT", "LOAD", "return 1"}, false},
	{"script|kill", []any{"SCRIPT", "KILL"}, false},
	{"client|kill", []any{"CLIENT", "KILL", "ID", "0"}, false},
	{"client|tracking", []any{"CLIENT", "TRACKING", "OFF"}, false},
	{"subscribe", []any{"SUBSCRIBE", redlock.MarkerKey}, false},
	{"psubscribe", []any{"PSUBSCRIBE", redlock.MarkerKey}, false},
	{"publish", []any{"PUBLISH", redlock.MarkerKey, ""}, false},
	{"watch", []any{"WATCH", redlock.MarkerKey}, false}, // refused inside MULTI, but only to who has the right
	{"del", []any{"DEL", redlock.MarkerKey}, false},
	{"dump", []any{"DUMP", redlock.MarkerKey}, false},
	{"restore", []any{"RESTORE", redlock.MarkerKey, "0", ""}, false},
	{"exists", []any{"EXISTS", redlock.MarkerKey}, false},
	{"getset", []any{"GETSET", redlock.MarkerKey, ""}, false},
	{"pttl", []any{"PTTL", redlock.MarkerKey}, false},
	{"pexpire", []any{"PEXPIRE", redlock.MarkerKey, "1"}, false},
	{"persist", []any{"PERSIST", redlock.MarkerKey}, false},
}

// missingRight is one that the proxy's user has not on a master.
type missingRight struct {
	name  string // of the command, or keys
	vital bool
	text  string // the server's
}

// knownRights are what masters said of rights, by the master's name. It is
// written by one goroutine, while none asks.
type knownRights map[string]rightsOfRun

// rightsOfRun is what was missing in one run of a server.
type rightsOfRun struct {
	run     string
	missing []missingRight
}

// ask returns what is missing on a master, from memory if that run of it was
// asked before.
func (k knownRights) ask(ctx context.Context, client *redis.Client, f *Facts, rules route.Rules) ([]missingRight, error) {
	if said, known := k[f.Name]; known && said.run == f.runID {
		return said.missing, nil
	}
	var examples []string
	for i := range rules {
		if key := rules[i].Example(); key != "" {
			examples = append(examples, key)
		}
	}
	return askRights(ctx, client, examples)
}

// remember keeps what masters said. One that is away may come back with other
// rights.
func (k knownRights) remember(masters []Facts) {
	clear(k)
	for _, f := range masters {
		if f.Err == nil {
			k[f.Name] = rightsOfRun{f.runID, f.missing}
		}
	}
}

// askRights returns what is missing. keys are examples of lock keys.
func askRights(ctx context.Context, client *redis.Client, keys []string) ([]missingRight, error) {
	conn := client.Conn()
	defer conn.Close() // and with it a transaction that was not discarded
	if err := conn.Do(ctx, "MULTI").Err(); err != nil {
		if refusesRight(err) { // what follows would be done
			return []missingRight{{"multi", true, err.Error()}}, nil
		}
		return nil, err
	}
	rights := neededRights
	for _, key := range keys {
		rights = append(rights[:len(rights):len(rights)], neededRight{"keys such as " + key, []any{"SET", key, ""}, true})
	}
	asking := conn.Pipeline()
	for _, right := range rights {
		asking.Do(ctx, right.form...)
	}
	replies, _ := asking.Exec(ctx)
	var missing []missingRight
	for i, reply := range replies {
		if err := reply.Err(); err != nil && refusesRight(err) {
			missing = append(missing, missingRight{rights[i].name, rights[i].vital, err.Error()})
		}
	}
	// EXEC cannot be queued. Nothing is behind MULTI only once DISCARD was done,
	// which the proxy does not need otherwise.
	if conn.Do(ctx, "DISCARD").Err() == nil && conn.Do(ctx, "MULTI").Err() == nil {
		if err := conn.Do(ctx, "EXEC").Err(); err != nil && strings.Contains(err.Error(), "NOPERM") {
			missing = append(missing, missingRight{"exec", false, err.Error()})
		}
	}
	return missing, ctx.Err()
}

// refusesRight finds the answers to a command that is forbidden, or that the
// server was told not to know.
func refusesRight(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "NOPERM") || strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "ERR unknown subcommand") ||
		strings.HasPrefix(text, "ERR Unknown subcommand")
}
