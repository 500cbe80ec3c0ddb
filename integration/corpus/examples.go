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
// lists. It fails the test if a command of Redis 7 has no example, and only tells about
// newer ones.
func Examples(t *testing.T, server *rig.Server) []Scenario {
	t.Helper()
	all := exampleLines{}
	files, err := texts.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file.Name() != newerFile {
			all.addFile(file.Name())
		}
	}
	keyed := keyedCommands(t, server)
	missing, newer := all.lacks(keyed)
	for _, name := range missing {
		t.Errorf("the keyed command %s has no example", name)
	}
	if len(newer) > 0 {
		t.Logf("not among these examples, because they are newer than Redis %s: %s", examplesUpTo, strings.Join(newer, ", "))
	}
	for name := range all {
		if _, ok := keyed[name]; !ok {
			t.Errorf("%s has examples, but the server has no such keyed command", name)
		}
	}
	var out []Scenario
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, text := range all[name] {
			out = append(out, exampleScenario(name, text)...)
		}
		out = append(out, arityScenario(name, keyed[name].arity))
	}
	return filled(out, placeholders(t, server))
}

// newerFile has examples of the commands and options of Valkey 9.
const newerFile = "newer.txt"

// NewerExamples is Examples for the file of newer commands. All of them must be known to the server.
func NewerExamples(t *testing.T, server *rig.Server) []Scenario {
	t.Helper()
	newer := exampleLines{}
	newer.addFile(newerFile)
	keyed := keyedCommands(t, server)
	var out []Scenario
	for _, name := range slices.Sorted(maps.Keys(newer)) {
		if _, ok := keyed[name]; !ok {
			t.Errorf("the server has no keyed command %s", name)
		}
		for _, text := range newer[name] {
			out = append(out, exampleScenario(name, text)...)
		}
	}
	return filled(out, placeholders(t, server))
}

// filled puts what placeholders returns into the scenarios.
func filled(scenarios []Scenario, fill map[string]string) []Scenario {
	for _, each := range scenarios {
		for i := range each.steps {
			for j, arg := range each.steps[i].args {
				if replacement, ok := fill[arg]; ok {
					each.steps[i].args[j] = replacement
				}
			}
		}
	}
	return scenarios
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
		"K": "lock:{n}", "K2": "lock:{n}:2", "K3": "lock:{n}:3", "P": "plain:{n}", "P:2": "plain:{n}:2",
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

// A keyedCommand is a command or subcommand that takes keys.
type keyedCommand struct {
	arity    int    // negative: at least that many words
	since    string // the version of Redis that brought it
	ofModule bool
}

// examplesUpTo is the last version of Redis whose commands must all have examples.
const examplesUpTo = "7.2"

// lacks returns the listed commands that have no example: those that must have one, and
// those that came later or with a module.
func (e exampleLines) lacks(listed map[string]keyedCommand) (missing, newer []string) {
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		switch command := listed[name]; {
		case len(e[name]) > 0:
		case command.ofModule || laterThan(command.since, examplesUpTo):
			newer = append(newer, name)
		default:
			missing = append(missing, name)
		}
	}
	return missing, newer
}

// laterThan compares two versions by their first two numbers. What has no version is old.
func laterThan(version, than string) bool {
	var major, minor, thanMajor, thanMinor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	_, _ = fmt.Sscanf(than, "%d.%d", &thanMajor, &thanMinor)
	return major > thanMajor || major == thanMajor && minor > thanMinor
}

// keyedCommands asks the server for the commands and subcommands that take keys.
func keyedCommands(t *testing.T, server *rig.Server) map[string]keyedCommand {
	t.Helper()
	commands, err := server.Direct.Do(t.Context(), "COMMAND").Slice()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := server.Direct.Do(t.Context(), "COMMAND", "DOCS").Result()
	if err != nil {
		t.Fatal(err)
	}
	keyed := keyedIn(commands, docs)
	if len(keyed) < 150 {
		t.Fatalf("only %d keyed commands found", len(keyed))
	}
	return keyed
}

// keyedIn reads the replies to COMMAND and COMMAND DOCS, as RESP3 has them.
func keyedIn(commands []any, docs any) map[string]keyedCommand {
	keyed := map[string]keyedCommand{}
	about, _ := docs.(map[any]any)
	for _, each := range commands {
		command := each.([]any)
		name := command[0].(string)
		doc, _ := about[name].(map[any]any)
		since, _ := doc["since"].(string)
		for _, spec := range command[8].([]any) {
			if !strings.Contains(fmt.Sprint(spec), "not_key") {
				keyed[name] = keyedCommand{int(command[1].(int64)), since, slices.Contains(command[2].([]any), any("module"))}
			}
		}
		maps.Copy(keyed, keyedIn(command[9].([]any), doc["subcommands"]))
	}
	return keyed
}
