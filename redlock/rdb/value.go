package rdb

import (
	"bytes"
	"slices"
	"sort"
)

// A Value is what a payload holds, in an order that depends on nothing else: a list's
// elements as they stand, the members of a set or a sorted set sorted, a hash's
// fields sorted, each with its value behind it. The TTLs of fields are not in it.
type Value struct {
	Kind   Kind
	Items  [][]byte
	Scores []float64 // of a sorted set: one for each of its members
}

// A Kind is the type of what a payload holds. Streams and the types of modules are
// not read, and are Unknown.
type Kind byte

// Unknown has one item: the payload's own bytes, without the server's version.
const (
	Unknown Kind = iota
	String
	List
	Set
	SortedSet
	Hash
)

// String is what TYPE says of such a key.
func (k Kind) String() string {
	return [...]string{"unknown", "string", "list", "set", "zset", "hash"}[k]
}

// Read reads a payload. What cannot be read, or is damaged, is Unknown.
func Read(dump []byte) Value {
	value, version, ok := Open(dump)
	if !ok {
		return Value{Items: [][]byte{dump}}
	}
	p := payload{rest: value[1:]}
	v := p.value(payloadType(value[0]), version)
	if v.Kind == Unknown || p.broken || len(p.rest) > 0 {
		return Value{Items: [][]byte{value}}
	}
	v.sort()
	return v
}

// StringValue is the string in a payload; false if the key is of another type.
func StringValue(dump []byte) ([]byte, bool) {
	value, _, ok := Open(dump)
	if !ok || value[0] != byte(typeString) {
		return nil, false
	}
	p := payload{rest: value[1:]}
	text := p.text()
	return text, !p.broken && len(p.rest) == 0
}

// Same tells whether two payloads hold the same, nil being an absent key: the same
// type, members and values, whatever the servers' versions and encodings. Neither
// the key's TTL nor its fields' TTLs nor the scores of a sorted set count, because
// locks keep times there, which differ between masters by milliseconds.
func Same(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if bytes.Equal(a, b) {
		return true
	}
	v, w := Read(a), Read(b)
	return v.Kind == w.Kind && slices.EqualFunc(v.Items, w.Items, bytes.Equal)
}

// sort puts what has no order of its own into one.
func (v *Value) sort() {
	switch v.Kind {
	case Set, SortedSet:
		sort.Sort(groups{v, 1})
	case Hash:
		sort.Sort(groups{v, 2})
	}
}

// groups are a value's items, so many of which belong together.
type groups struct {
	*Value
	size int
}

func (g groups) Len() int { return len(g.Items) / g.size }

func (g groups) Less(i, j int) bool {
	return bytes.Compare(g.Items[i*g.size], g.Items[j*g.size]) < 0
}

func (g groups) Swap(i, j int) {
	for n := range g.size {
		g.Items[i*g.size+n], g.Items[j*g.size+n] = g.Items[j*g.size+n], g.Items[i*g.size+n]
	}
	if g.Scores != nil {
		g.Scores[i], g.Scores[j] = g.Scores[j], g.Scores[i]
	}
}
