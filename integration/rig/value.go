package rig

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Value is a parsed reply.
type Value struct {
	Kind  byte
	Text  string // of an aggregate: its length, as received
	items []Value
}

// ParseValue parses the first value in raw and returns it with the rest of raw. The value
// must be complete.
func ParseValue(raw []byte) (Value, []byte) {
	line, rest, _ := bytes.Cut(raw, []byte("\r\n"))
	v := Value{Kind: line[0], Text: string(line[1:])}
	size, err := strconv.Atoi(v.Text)
	switch v.Kind {
	case '$', '=', '!':
		if size >= 0 && err == nil {
			v.Text = string(rest[:size])
			rest = rest[size+2:]
		}
		return v, rest
	case '%', '|':
		size *= 2
	case '*', '~', '>':
	default:
		return v, rest
	}
	for range max(size, 0) {
		var item Value
		item, rest = ParseValue(rest)
		v.items = append(v.items, item)
	}
	return v, rest
}

func (v Value) Same(other Value, leaf func(a, b Value) bool) bool {
	if v.Kind != other.Kind || len(v.items) != len(other.items) {
		return false
	}
	if len(v.items) == 0 {
		return leaf(v, other)
	}
	for i := range v.items {
		if !v.items[i].Same(other.items[i], leaf) {
			return false
		}
	}
	return true
}

// Sort sorts every aggregate by its contents. It may separate the pairs of a map. The
// comparison still sees the same set of values.
func (v Value) Sort() {
	for i := range v.items {
		v.items[i].Sort()
	}
	slices.SortFunc(v.items, func(a, b Value) int { return strings.Compare(a.String(), b.String()) })
}

func (v Value) String() string {
	var b strings.Builder
	b.WriteByte(v.Kind)
	b.WriteString(v.Text)
	for _, item := range v.items {
		b.WriteByte(' ')
		b.WriteString(item.String())
	}
	return b.String()
}
