package rdb

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// A real server takes what is dumped for what it was, and so does Read.
func TestDump(t *testing.T) {
	m := livetest.Start(t)
	var items [][]byte
	var scores []float64
	for i, item := range elementsOfEverySize() {
		items, scores = append(items, []byte(item)), append(scores, math.Pow(-1.5, float64(i)))
	}
	scores[0], scores[1], scores[2] = 0, math.Inf(1), math.Inf(-1)
	items, scores = items[:len(items)/2*2], scores[:len(items)/2*2]
	values := []Value{
		{Kind: List, Items: items}, {Kind: Set, Items: items}, {Kind: Hash, Items: items},
		{Kind: SortedSet, Items: items, Scores: scores},
	}
	for _, item := range items {
		values = append(values, Value{Kind: String, Items: [][]byte{item}})
	}
	for _, v := range values {
		v.Items, v.Scores = slices.Clone(v.Items), slices.Clone(v.Scores)
		dump := Dump(v)
		m.Must("RESTORE", "k", "0", string(dump), "REPLACE")
		for who, got := range map[string]Value{"the server": Read(m.Dump("k")), "Read": Read(dump)} {
			if got.Kind != v.Kind || !slices.EqualFunc(got.Items, v.Items, bytes.Equal) || !slices.Equal(got.Scores, v.Scores) {
				t.Errorf("%s has another %v, of %d, where there are %d", who, got.Kind, len(got.Items), len(v.Items))
			}
		}
	}
	if Dump(Value{Items: [][]byte{[]byte("?")}}) != nil {
		t.Error("what is not known is dumped")
	}
}

// What is equal is dumped alike, in whichever order it was given.
func TestDumpsOfEqualsAreEqual(t *testing.T) {
	for _, row := range []struct{ a, b Value }{
		{Value{Kind: Set, Items: texts("b", "a")}, Value{Kind: Set, Items: texts("a", "b")}},
		{Value{Kind: Hash, Items: texts("g", "1", "f", "2")}, Value{Kind: Hash, Items: texts("f", "2", "g", "1")}},
		{Value{SortedSet, texts("b", "a"), []float64{1, 2}}, Value{SortedSet, texts("a", "b"), []float64{2, 1}}},
	} {
		if a, b := Dump(row.a), Dump(row.b); !bytes.Equal(a, b) {
			t.Errorf("%v: %q and %q", row.a.Kind, a, b)
		}
	}
}

func texts(list ...string) (items [][]byte) {
	for _, text := range list {
		items = append(items, []byte(text))
	}
	return items
}
