package command

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

// Table knows commands by name. It never changes once built, so any
// number of sessions may use one.
type Table struct {
	commands map[string]*Spec
}

var builtinTable = sync.OnceValue(func() *Table {
	var list []any
	if err := json.Unmarshal(commandsFile, &list); err != nil {
		panic("proxy: commands.json: " + err.Error())
	}
	table, err := (&Table{}).extended(list)
	if err != nil {
		panic("proxy: commands.json: " + err.Error())
	}
	return table
})

// Builtin is the table the proxy starts with.
func Builtin() *Table { return builtinTable() }

// With is this table and the commands and subcommands that only the server
// knows whose reply to COMMAND is given: a module's, or a newer release's. What
// the table knows already stays, so no upstream decides where the keys of SET
// are. Where an element describes no command it is an error; the caller then
// keeps the table it has.
func (t *Table) With(reply []any) (*Table, error) {
	table, err := t.extended(reply)
	if err != nil {
		return nil, fmt.Errorf("reply to COMMAND: %w", err)
	}
	return table, nil
}

func (t *Table) extended(list []any) (*Table, error) {
	table := &Table{commands: maps.Clone(t.commands)}
	if table.commands == nil {
		table.commands = make(map[string]*Spec, len(list))
	}
	for _, element := range list {
		spec, err := decodeCommand(element)
		if err != nil {
			return nil, err
		}
		table.commands[spec.Name] = table.commands[spec.Name].joined(spec)
	}
	return table, nil
}

// Lookup finds the command that args ask for, nil if it is unknown. Of a
// command with subcommands it is the subcommand, and nil, as in Redis, if that
// is unknown; the bare name finds the container.
func (t *Table) Lookup(args [][]byte) *Spec {
	if len(args) == 0 {
		return nil
	}
	spec := find(t.commands, args[0])
	if spec == nil || spec.subcommands == nil || len(args) == 1 {
		return spec
	}
	return find(spec.subcommands, args[1])
}

// All goes through the commands and their subcommands.
func (t *Table) All() iter.Seq[*Spec] {
	return func(yield func(*Spec) bool) {
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
func find(commands map[string]*Spec, name []byte) *Spec {
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
