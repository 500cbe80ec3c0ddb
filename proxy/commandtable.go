package proxy

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"sync"
)

// The built-in table: what redis 7.0 and valkey 8.0 answer to COMMAND, and the
// commands of later releases. The addresses are any two such servers.
//
//go:generate go run ./gencommands commands.json 127.0.0.1:6379 127.0.0.1:6380
//go:embed commands.json
var commandsFile []byte

// commandTable knows commands by name. It never changes once built, so any
// number of sessions may use one.
type commandTable struct {
	commands map[string]*commandSpec
}

var builtinTable = sync.OnceValue(func() *commandTable {
	var list []any
	if err := json.Unmarshal(commandsFile, &list); err != nil {
		panic("proxy: commands.json: " + err.Error())
	}
	table, err := (&commandTable{}).extended(list)
	if err != nil {
		panic("proxy: commands.json: " + err.Error())
	}
	return table
})

// builtinCommands is the table the proxy starts with.
func builtinCommands() *commandTable { return builtinTable() }

// with is this table and the commands and subcommands that only the server
// knows whose reply to COMMAND is given: a module's, or a newer release's. What
// the table knows already stays, so no upstream decides where the keys of SET
// are. Where an element describes no command it is an error; the caller then
// keeps the table it has.
func (t *commandTable) with(reply []any) (*commandTable, error) {
	table, err := t.extended(reply)
	if err != nil {
		return nil, fmt.Errorf("reply to COMMAND: %w", err)
	}
	return table, nil
}

func (t *commandTable) extended(list []any) (*commandTable, error) {
	table := &commandTable{commands: maps.Clone(t.commands)}
	if table.commands == nil {
		table.commands = make(map[string]*commandSpec, len(list))
	}
	for _, element := range list {
		spec, err := decodeCommand(element)
		if err != nil {
			return nil, err
		}
		table.commands[spec.name] = table.commands[spec.name].joined(spec)
	}
	return table, nil
}

// lookup finds the command that args ask for, nil if it is unknown. Of a
// command with subcommands it is the subcommand, and nil, as in Redis, if that
// is unknown; the bare name finds the container.
func (t *commandTable) lookup(args [][]byte) *commandSpec {
	if len(args) == 0 {
		return nil
	}
	spec := find(t.commands, args[0])
	if spec == nil || spec.subcommands == nil || len(args) == 1 {
		return spec
	}
	return find(spec.subcommands, args[1])
}

// all goes through the commands and their subcommands.
func (t *commandTable) all() iter.Seq[*commandSpec] {
	return func(yield func(*commandSpec) bool) {
		for _, spec := range t.commands {
			if !yield(spec) {
				return
			}
			for _, sub := range spec.subcommands {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// longestLookup bounds the names that are found; servers' own have under 30
// bytes, and what is longer is as good as unknown.
const longestLookup = 64

// find looks name up without regard to ASCII case and without allocating.
func find(commands map[string]*commandSpec, name []byte) *commandSpec {
	if len(name) > longestLookup {
		return nil
	}
	var space [longestLookup]byte
	lower := space[:len(name)]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return commands[string(lower)]
}
