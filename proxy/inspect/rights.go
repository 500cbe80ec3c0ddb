package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// A master may deny the proxy's user commands that the proxy needs there. To find out,
// the proxy queues each command in a transaction. A server checks rights when it queues
// a command. DISCARD then drops the queue. So no command runs, and the user needs no
// right to ask about rights.

// neededRight is a command that the proxy itself sends to masters.
type neededRight struct {
	name  string // in the notation of ACL rules
	form  []any
	vital bool // without it the master cannot vote at all: package redlock tries it with each probe
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
	{"watch", []any{"WATCH", redlock.MarkerKey}, true}, // without the right: NOPERM; with it: another error, because of MULTI
	{"del", []any{"DEL", redlock.MarkerKey}, true},
	{"dump", []any{"DUMP", redlock.MarkerKey}, true},
	{"restore", []any{"RESTORE", redlock.MarkerKey, "0", ""}, true},
	{"exists", []any{"EXISTS", redlock.MarkerKey}, false},
	{"getset", []any{"GETSET", redlock.MarkerKey, ""}, false},
	{"pttl", []any{"PTTL", redlock.MarkerKey}, true},
	{"scan", []any{"SCAN", "0"}, false},
	{"memory|usage", []any{"MEMORY", "USAGE", redlock.MarkerKey}, false},
	{"type", []any{"TYPE", redlock.MarkerKey}, false},
	{"pexpire", []any{"PEXPIRE", redlock.MarkerKey, "1"}, true},
	{"persist", []any{"PERSIST", redlock.MarkerKey}, true},
}

// missingRight is a right that the proxy's user lacks on a master.
type missingRight struct {
	name  string // of the command, or "keys such as ..."
	vital bool
	text  string // the server's error
}

// askRights asks a master and returns the missing rights. Each question about one leaves an entry
// in the server's log.
func askRights(ctx context.Context, client *redis.Client, rules route.Rules) ([]missingRight, error) {
	conn := client.Conn()
	defer conn.Close() // also ends a transaction that was not discarded
	if err := conn.Do(ctx, "MULTI").Err(); err != nil {
		if refusesRight(err) { // stop here: without MULTI the next commands would run
			return []missingRight{{"multi", true, err.Error()}}, nil
		}
		return nil, err
	}
	rights := neededRights
	for i := range rules {
		if key := rules[i].Example(); key != "" {
			rights = append(rights[:len(rights):len(rights)], neededRight{keysPrefix + key, []any{"SET", key, ""}, true})
		}
	}
	asking := conn.Pipeline()
	for _, right := range rights {
		asking.Do(ctx, right.form...)
	}
	replies, _ := asking.Exec(ctx)
	var missing []missingRight
	for i, reply := range replies {
		right, err := rights[i], reply.Err()
		if err == nil || !refusesRight(err) {
			continue
		}
		if i < len(neededRights) && deniesKeys(err) { // the user may run the command on other keys
			right.name, right.vital = keysPrefix+redlock.MarkerKey, true
		}
		if !slices.ContainsFunc(missing, func(m missingRight) bool { return m.name == right.name }) {
			missing = append(missing, missingRight{right.name, right.vital, err.Error()})
		}
	}
	// EXEC cannot be queued, so it is tried on an empty transaction. Only after a
	// DISCARD that worked is the transaction surely empty. The proxy does not need the
	// right to DISCARD otherwise.
	if conn.Do(ctx, "DISCARD").Err() == nil && conn.Do(ctx, "MULTI").Err() == nil {
		if err := conn.Do(ctx, "EXEC").Err(); err != nil && strings.Contains(err.Error(), "NOPERM") {
			missing = append(missing, missingRight{"exec", true, err.Error()})
		}
	}
	return missing, ctx.Err()
}

// keysPrefix begins the name of a right to keys.
const keysPrefix = "keys such as "

// deniesKeys tells whether a server denied the keys of a command, and not the command. Redis 7.2 and
// Valkey word it in the second way.
func deniesKeys(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "permissions to access one of the keys") ||
		strings.Contains(err.Error(), "permissions to access a key"))
}

// refusesRight tells whether a server refused a command because the user may not run it,
// or because the command was renamed or removed.
func refusesRight(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "NOPERM") || strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "ERR unknown subcommand") ||
		strings.HasPrefix(text, "ERR Unknown subcommand")
}
