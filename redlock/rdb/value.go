package rdb

import (
	"bytes"
	"slices"
	"sort"
)

// A Value is the content of a payload in an order that is the same on every master:
// a list's elements as stored, the members of a set or sorted set sorted, and a hash's
// fields sorted, each followed by its value. The TTLs of fields are left out.
type Value struct {
	Kind   Kind
	Items  [][]byte
	Scores []float64 // a sorted set's, one for each member
}

// A Kind is the type of a payload's content. Streams and types of modules are Unknown.
type Kind byte

// An Unknown value has one item: the payload's bytes without the server's version.
const (
	Unknown Kind = iota
	String
	List
	Set
	SortedSet
	Hash
)

// String is TYPE's reply for such a key.
func (k Kind) String() string {
	return [...]string{"unknown", "string", "list", "set", "zset", "hash"}[k]
}

// Read decodes a payload. If it cannot, the value is Unknown.
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

// HasFieldTTLs tells whether a payload is of a hash whose fields may expire, each at its own time.
func HasFieldTTLs(dump []byte) bool {
	value, _, ok := Open(dump)
	return ok && slices.Contains([]payloadType{typeHashExpiringValkey, typeHashExpiring, typeHashListpackExpiring}, payloadType(value[0]))
}

// StringValue is the string in a payload. It returns false for any other type.
func StringValue(dump []byte) ([]byte, bool) {
	value, _, ok := Open(dump)
	if !ok || value[0] != byte(typeString) {
		return nil, false
	}
	p := payload{rest: value[1:]}
	text := p.text()
	return text, !p.broken && len(p.rest) == 0
}

// Same tells whether two payloads have the same type, members and values, whatever the
// servers' versions and encodings. A nil payload is an absent key. The TTLs of fields
// and the scores that are times are not compared, because they differ between masters by
// milliseconds.
func Same(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if bytes.Equal(a, b) {
		return true
	}
	v, w := Read(a), Read(b)
	return v.Kind == w.Kind && slices.EqualFunc(v.Items, w.Items, bytes.Equal) && slices.EqualFunc(v.Scores, w.Scores, sameScore)
}

// leastTime is the least score that is a time: in seconds since 1970, it is in 2001. Smaller scores count.
const leastTime = 1e9

func sameScore(a, b float64) bool { return a == b || a >= leastTime && b >= leastTime }

// HasTimesApart tells whether two sorted sets have a member whose score is a time, and is that much
// more in the first one.
func HasTimesApart(a, b []byte, by int64) bool {
	v, w := Read(a), Read(b)
	for i, member := range v.Items {
		if i < len(v.Scores) && i < len(w.Scores) && bytes.Equal(member, w.Items[i]) && sameScore(v.Scores[i], w.Scores[i]) && int64(v.Scores[i]-w.Scores[i]) == by {
			return true
		}
	}
	return false
}

// sort brings sets, sorted sets and hashes into the order of Value.
func (v *Value) sort() {
	switch v.Kind {
	case Set, SortedSet:
		sort.Sort(groups{v, 1})
	case Hash:
		sort.Sort(groups{v, 2})
	}
}

// groups sorts a value's items in groups of a size.
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
