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
	Items []Value
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
		v.Items = append(v.Items, item)
	}
	return v, rest
}

func (v Value) Same(other Value, leaf func(a, b Value) bool) bool {
	if v.Kind != other.Kind || len(v.Items) != len(other.Items) {
		return false
	}
	if len(v.Items) == 0 {
		return leaf(v, other)
	}
	for i := range v.Items {
		if !v.Items[i].Same(other.Items[i], leaf) {
			return false
		}
	}
	return true
}

// Sort sorts every aggregate by its contents. It may separate the pairs of a map. The
// comparison still sees the same set of values.
func (v Value) Sort() {
	for i := range v.Items {
		v.Items[i].Sort()
	}
	slices.SortFunc(v.Items, func(a, b Value) int { return strings.Compare(a.String(), b.String()) })
}

func (v Value) String() string {
	var b strings.Builder
	b.WriteByte(v.Kind)
	b.WriteString(v.Text)
	for _, item := range v.Items {
		b.WriteByte(' ')
		b.WriteString(item.String())
	}
	return b.String()
}
