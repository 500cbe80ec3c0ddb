package rdb

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// A digest stands for what a key holds: type, members and values, whatever the
// server's version and encoding; unordered collections are sorted. Neither the
// key's TTL nor its fields' TTLs nor the scores of a sorted set are in it,
// because locks keep times there, which differ between masters by
// milliseconds. The zero digest stands for an absent key.
type digest [sha256.Size]byte

// digestOf is the digest of a DUMP payload, nil being an absent key. A payload
// of an unknown kind, such as a stream, stands for its own bytes, so that two
// masters agree on it only if they stored it alike.
func digestOf(dump []byte) digest {
	if dump == nil {
		return digest{}
	}
	c, ok := Read(dump)
	if !ok {
		c = Value{Kind: Unknown, Items: [][]byte{dump}}
		if value, _, ok := Open(dump); ok {
			c.Items[0] = value
		}
	}
	h := sha256.New()
	h.Write([]byte{byte(c.Kind)})
	var size [8]byte
	for _, item := range c.Items {
		binary.BigEndian.PutUint64(size[:], uint64(len(item)))
		h.Write(size[:])
		h.Write(item)
	}
	var d digest
	h.Sum(d[:0])
	return d
}

// Same tells whether two masters' DUMP payloads hold the same, which is
// what equal digests say, without reading payloads that are equal as they are.
func Same(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return bytes.Equal(a, b) || digestOf(a) == digestOf(b)
}

// StringValue is the string in a DUMP payload; false if the key is of another
// type. The result may share dump's memory.
func StringValue(dump []byte) ([]byte, bool) {
	value, _, ok := Open(dump)
	if !ok || value[0] != byte(typeString) {
		return nil, false
	}
	p := payload{rest: value[1:]}
	text := p.text()
	return text, !p.broken && len(p.rest) == 0
}

// A Value is what a payload holds, in an order that depends on nothing else: a list's
// elements as they stand, a set's and a sorted set's members sorted, a hash's
// fields sorted, each with its value behind it.
type Value struct {
	Kind  Kind
	Items [][]byte
}

// A Kind is the type of what a payload holds. Streams and the types of modules are
// not read, and are Unknown.
type Kind byte

const (
	Unknown Kind = iota
	String
	List
	Set
	SortedSet
	Hash
)

func (c *Value) sort() {
	switch c.Kind {
	case Set, SortedSet:
		slices.SortFunc(c.Items, bytes.Compare)
	case Hash:
		pairs := make([][2][]byte, 0, len(c.Items)/2)
		for pair := range slices.Chunk(c.Items, 2) {
			pairs = append(pairs, [2][]byte(pair))
		}
		slices.SortFunc(pairs, func(a, b [2][]byte) int { return bytes.Compare(a[0], b[0]) })
		for i, pair := range pairs {
			copy(c.Items[2*i:], pair[:])
		}
	}
}
