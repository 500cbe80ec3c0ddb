package route

import (
	"cmp"
	_ "embed"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// commandsText is the built-in table.
//
//go:embed commands.txt
var commandsText string

// Table holds commands by name. It never changes once it is built, so any number of
// sessions may use one.
type Table struct {
	commands map[string]*Spec
	Learned  bool // a server has told its commands, too
}

var builtinTable = sync.OnceValue(func() *Table {
	table := &Table{commands: map[string]*Spec{}}
	for row := range strings.Lines(commandsText) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		spec := parseRow(strings.Fields(row))
		container, _, isSub := strings.Cut(spec.Name, "|")
		if isSub {
			table.commands[container].addSubcommand(spec)
		} else {
			table.commands[spec.Name] = spec
		}
	}
	return table
})

// parseRow reads a row of commands.txt. It panics if the row is wrong.
func parseRow(words []string) *Spec {
	spec := &Spec{Name: words[0], Arity: mustInt(words[1]), traits: traitsOf(words[0])}
	for _, word := range words[2:] {
		if flag := flagNames[word]; flag != 0 {
			spec.flags |= flag
		} else if at := slices.Index(traitNames, word); at >= 0 {
			spec.traits |= 1 << at
		} else {
			spec.keys = append(spec.keys, parseKeys(word))
		}
	}
	if spec.shareable() {
		spec.traits |= Shareable
	}
	spec.setOnlyKey()
	return spec
}

var keysForm = regexp.MustCompile(`^(?:([A-Z]+)@)?(#?)(-?\d+)(?::(-?\d+))?(?::(\d+))?(?:/(\d+))?$`)

// parseKeys reads where keys are in a row of commands.txt.
func parseKeys(word string) keySpec {
	part := keysForm.FindStringSubmatch(word)
	if part == nil {
		panic("commands.txt: " + word + " is no flag, no trait and no keys")
	}
	spec := keySpec{keyword: part[1], index: mustInt(part[3]), last: mustInt(part[4]), step: max(1, mustInt(part[5])), limit: mustInt(part[6])}
	if part[2] != "" {
		spec.counted, spec.firstKey = true, 1
	}
	return spec
}

func mustInt(text string) int {
	n, err := strconv.Atoi(cmp.Or(text, "0"))
	if err != nil {
		panic("commands.txt: " + err.Error())
	}
	return n
}

// Builtin returns the table with which the proxy starts.
func Builtin() *Table { return builtinTable() }

// With returns a new table: t plus the commands and subcommands of a server that t
// does not know, such as those of a module or of a newer release. reply is the
// server's reply to COMMAND. Known commands stay as they are, so no upstream decides
// where the keys of SET are. With returns an error if an element of reply does not
// describe a command. The caller then goes on with t.
func (t *Table) With(reply []any) (*Table, error) {
	table, err := t.extended(reply)
	if err != nil {
		return nil, fmt.Errorf("reply to COMMAND: %w", err)
	}
	table.Learned = true
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

// Lookup returns the command of a request, or nil if the command is unknown. If the
// command has subcommands, Lookup returns the subcommand, or nil, as in Redis, if
// that is unknown. A bare name finds the container. So does an unknown subcommand of
// REDLOCK, because no server may answer it.
func (t *Table) Lookup(args [][]byte) *Spec {
	if len(args) == 0 {
		return nil
	}
	spec := find(t.commands, args[0])
	if spec == nil || spec.subcommands == nil || len(args) == 1 {
		return spec
	}
	sub := find(spec.subcommands, args[1])
	if sub == nil && spec.Is(Console) {
		return spec
	}
	return sub
}

// All iterates over the commands and their subcommands, in no particular order.
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

// longestLookup bounds the names that find looks for, in bytes. The servers' own
// names are shorter than 30 bytes. A longer name counts as unknown.
const longestLookup = 64

// find returns the command with this name, or nil. It ignores ASCII case and does not
// allocate.
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
