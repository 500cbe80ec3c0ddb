package corpus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// An example is the words after the command's name. K, K2 and K3 become lock keys of this
// example alone. An example runs once for every state below. Before it runs, K and K2 are
// put into that state. K3 never exists. A text with ";" is a small scenario of its own
// and starts without any key.
type exampleLines map[string][]string

var keyStates = []struct {
	name  string
	setup []string // runs on K, and the same on K2
}{
	{"missing", nil},
	{"string", []string{"SET K 10"}},
	{"string with time", []string{"SET K abc PX 100000"}},
	{"list", []string{"RPUSH K a b c"}},
	{"set", []string{"SADD K 1 2 3"}},
	{"hash", []string{"HSET K f 1 g 2"}},
	{"zset", []string{"ZADD K 1 a 2 b 3 c"}},
	{"stream", []string{"XADD K 1-1 f v", "XADD K 2-1 f w"}},
}

// comparisons has the commands whose replies cannot be equal byte for byte.
var comparisons = map[string]comparison{
	"ttl": remainingSeconds, "pttl": remaining, "expiretime": remainingSeconds, "pexpiretime": remaining,
	"object|idletime": idleSeconds, // the server's own clock since the last access
	"xpending":        idle,        // how long each entry has been pending
	"xinfo|consumers": idle,        // how long each consumer has been idle
	"xinfo|stream":    idle,        // FULL lists delivery times
	"fcall":           declined,    // functions live on the upstream, lock keys on the masters
	"fcall_ro":        declined,
	"migrate":         declined, // a lock is on a quorum, so there is no single server to move it from
}

// notOnState leaves out a state on which the command picks a member at random. Examples
// with ";" cover the command with a single member.
var notOnState = map[string]string{
	"spop": "set", "srandmember": "set", "hrandfield": "hash", "zrandmember": "zset",
}

// Examples turns the examples into scenarios, for every command with keys that the server
// lists. It fails the test if a command has no example.
func Examples(t *testing.T, server *rig.Server) []Scenario {
	t.Helper()
	all := exampleLines{}
	for _, family := range []exampleLines{stringExamples, keyExamples, listExamples, setExamples, hashExamples,
		sortedSetExamples, streamExamples, geoExamples, scriptExamples} {
		for name, lines := range family {
			if _, twice := all[name]; twice {
				t.Errorf("two families have examples of %s", name)
			}
			all[name] = lines
		}
	}
	arities := keyedCommands(t, server)
	for _, name := range slices.Sorted(maps.Keys(arities)) {
		if len(all[name]) == 0 {
			t.Errorf("the keyed command %s has no example", name)
		}
	}
	for name := range all {
		if _, ok := arities[name]; !ok {
			t.Errorf("%s has examples, but the server has no such keyed command", name)
		}
	}
	fill := placeholders(t, server)
	var out []Scenario
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, text := range all[name] {
			out = append(out, exampleScenario(name, text)...)
		}
		out = append(out, arityScenario(name, arities[name]))
	}
	for _, each := range out {
		for i := range each.steps {
			for j, arg := range each.steps[i].args {
				if replacement, ok := fill[arg]; ok {
					each.steps[i].args[j] = replacement
				}
			}
		}
	}
	return out
}

// placeholders are words of examples that only a running server can provide.
func placeholders(t *testing.T, server *rig.Server) map[string]string {
	t.Helper()
	ctx := context.Background()
	if err := server.Direct.Set(ctx, "dumped", "payload", 0).Err(); err != nil {
		t.Fatal(err)
	}
	dump, err := server.Direct.Dump(ctx, "dumped").Result()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"K": "lock:{n}", "K2": "lock:{n}:2", "K3": "lock:{n}:3", "P": "plain:{n}",
		"DUMPED": dump, "CLOSEDPORT": strconv.Itoa(rig.FreePort(t)),
		"INANHOUR": strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10),
	}
}

// exampleScenario makes the scenarios of one example.
func exampleScenario(name, text string) []Scenario {
	if strings.Contains(text, ";") {
		s := Scenario{Name: name + ": " + text}
		for each := range strings.SplitSeq(text, ";") {
			next := line(each)
			s.steps = append(s.steps, next.by(comparisons[commandOf(next.args)]))
		}
		return []Scenario{s}
	}
	command := append(strings.Split(strings.ToUpper(name), "|"), Words(text)...)
	var out []Scenario
	for _, state := range keyStates {
		if notOnState[name] == state.name {
			continue
		}
		s := Scenario{Name: fmt.Sprintf("%s on %s", strings.Join(command, " "), state.name)}
		for _, key := range []string{"K", "K2"} {
			if !slices.Contains(command, key) {
				continue
			}
			for _, setup := range state.setup {
				args := Words(setup)
				args[1] = key
				s.steps = append(s.steps, cmd(args...))
			}
		}
		s.steps = append(s.steps, cmd(slices.Clone(command)...).by(comparisons[name]))
		out = append(out, s)
	}
	return out
}

// commandOf returns the command's name as comparisons has it.
func commandOf(args []string) string {
	name := strings.ToLower(args[0])
	if (name == "xinfo" || name == "object") && len(args) > 1 {
		name += "|" + strings.ToLower(args[1])
	}
	return name
}

// arityScenario sends a command with too few arguments and, if it has a limit, with too
// many. All arguments are lock keys.
func arityScenario(name string, arity int) Scenario {
	s := Scenario{Name: name + ": wrong number of arguments"}
	command := strings.Split(strings.ToUpper(name), "|")
	least := max(arity, -arity)
	for n := len(command); n < least; n++ {
		s.steps = append(s.steps, cmd(slices.Concat(command, slices.Repeat([]string{"K"}, n-len(command)))...))
	}
	if arity > 0 {
		s.steps = append(s.steps, cmd(slices.Concat(command, slices.Repeat([]string{"K"}, arity-len(command)+1))...))
	}
	return s
}

// keyedCommands asks the server for the commands and subcommands that take keys, and for
// their arity (negative: at least that many words).
func keyedCommands(t *testing.T, server *rig.Server) map[string]int {
	t.Helper()
	reply, err := server.Direct.Do(context.Background(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	keyed := map[string]int{}
	for _, each := range reply {
		maps.Copy(keyed, keyedIn(each.([]any)))
	}
	if len(keyed) < 150 {
		t.Fatalf("only %d keyed commands found", len(keyed))
	}
	return keyed
}

func keyedIn(command []any) map[string]int {
	keyed := map[string]int{}
	for _, spec := range command[8].([]any) {
		if !strings.Contains(fmt.Sprint(spec), "not_key") {
			keyed[command[0].(string)] = int(command[1].(int64))
		}
	}
	for _, sub := range command[9].([]any) {
		maps.Copy(keyed, keyedIn(sub.([]any)))
	}
	return keyed
}
