package rdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// compact and loose make a server choose its smallest and its largest encodings.
var (
	compact = map[string]string{
		"hash-max-listpack-entries": "100000", "hash-max-listpack-value": "100000",
		"zset-max-listpack-entries": "100000", "zset-max-listpack-value": "100000",
		"set-max-intset-entries": "100000", "list-max-listpack-size": "-5", "list-compress-depth": "1",
		"rdbcompression": "yes",
	}
	loose = map[string]string{
		"hash-max-listpack-entries": "0", "zset-max-listpack-entries": "0", "set-max-intset-entries": "0",
		"list-max-listpack-size": "1", "list-compress-depth": "0", "rdbcompression": "no",
	}
)

func configure(m *livetest.Server, settings map[string]string) {
	for name, value := range settings {
		m.Must("CONFIG", "SET", name, value)
	}
}

// build stores the elements under a key as one type; shuffled may store those
// of an unordered type in another order and with other scores, which are times.
func build(m *livetest.Server, of, key string, list []string, shuffled bool) {
	groups := slices.Collect(slices.Chunk(list, 2))
	if shuffled {
		list = slices.Clone(list)
		random := rand.New(rand.NewPCG(1, 2))
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		random.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	}
	m.Must("DEL", key)
	switch of {
	case "set":
		m.Must(append([]string{"SADD", key}, list...)...)
	case "sorted set":
		for i, member := range list {
			m.Must("ZADD", key, strconv.FormatFloat(float64(i)*1.5+leastTime, 'g', -1, 64), member)
		}
	case "hash":
		for _, g := range groups {
			m.Must("HSET", key, g[0], g[len(g)-1])
		}
	}
}

func TestSameCollections(t *testing.T) {
	m := livetest.Start(t)
	everything := elementsOfEverySize()
	random := rand.New(rand.NewPCG(3, 4))
	integers := make([]string, 300)
	for i := range integers {
		integers[i] = strconv.FormatInt(int64(random.Uint64())>>random.UintN(63), 10)
	}
	slices.Sort(integers)
	integers = slices.Compact(integers)
	for _, list := range [][]string{{"one"}, {"one", "two", "three"}, integers, everything} {
		for _, of := range []string{"set", "sorted set", "hash"} {
			t.Run(fmt.Sprintf("%s of %d", of, len(list)), func(t *testing.T) {
				configure(m, compact)
				build(m, of, "a", list, false)
				configure(m, loose)
				build(m, of, "b", list, true)
				a, b := m.Dump("a"), m.Dump("b")
				if len(list) > 3 && slices.Equal(a, b) {
					t.Fatal("both are encoded alike: the test tests nothing")
				}
				if !Same(a, b) {
					t.Errorf("not the same: %s and %s", m.Must("OBJECT", "ENCODING", "a"), m.Must("OBJECT", "ENCODING", "b"))
				}
				for i := range min(len(list), 12) {
					other := slices.Clone(list)
					other[i] += "x"
					build(m, of, "b", other, true)
					if Same(a, m.Dump("b")) {
						t.Errorf("another element, %.20q, is the same", other[i])
					}
				}
				if _, ok := StringValue(a); ok {
					t.Error("it is taken for a string")
				}
			})
		}
	}
}

func TestSameLists(t *testing.T) {
	m := livetest.Start(t)
	list := elementsOfEverySize()
	configure(m, compact)
	m.Must(append([]string{"RPUSH", "a"}, list...)...)
	configure(m, loose)
	reversed := slices.Clone(list)
	slices.Reverse(reversed)
	m.Must(append([]string{"LPUSH", "b"}, reversed...)...)
	a, b := m.Dump("a"), m.Dump("b")
	if slices.Equal(a, b) {
		t.Fatal("both are encoded alike: the test tests nothing")
	}
	if !Same(a, b) {
		t.Error("not the same")
	}
	v := Read(a)
	if v.Kind != List || len(v.Items) != len(list) {
		t.Fatalf("read as a %v of %d", v.Kind, len(v.Items))
	}
	for i, item := range v.Items {
		if string(item) != list[i] {
			t.Errorf("element %d: %.40q, stored as %.40q", i, item, list[i])
		}
	}
	m.Must("RPOPLPUSH", "b", "b")
	if Same(a, m.Dump("b")) {
		t.Error("another order is the same")
	}
}

func TestSameStrings(t *testing.T) {
	m := livetest.Start(t)
	seen := [][]byte{nil}
	for _, value := range elementsOfEverySize() {
		m.Must("CONFIG", "SET", "rdbcompression", "yes")
		m.Must("SET", "k", value)
		a := m.Dump("k")
		m.Must("CONFIG", "SET", "rdbcompression", "no")
		m.Must("SET", "k", "")
		for part := range slices.Chunk([]byte(value), 1+len(value)/3) {
			m.Must("APPEND", "k", string(part))
		}
		b := m.Dump("k")
		if !Same(a, b) {
			t.Errorf("%.40q: not the same", value)
		}
		if i := slices.IndexFunc(seen, func(other []byte) bool { return Same(a, other) }); i >= 0 {
			t.Errorf("%.40q is the same as %.40q", value, seen[i])
		}
		seen = append(seen, a)
		for _, dump := range [][]byte{a, b} {
			if got, ok := StringValue(dump); !ok || string(got) != value {
				t.Errorf("%.40q is read as %.40q, ok %v", value, got, ok)
			}
		}
	}
}

// The same members in another type, or the same bytes cut elsewhere, are
// another state.
func TestSameKnowsTypes(t *testing.T) {
	m := livetest.Start(t)
	m.Must("SET", "string", "a")
	m.Must("RPUSH", "list", "a")
	m.Must("SADD", "set", "a")
	m.Must("ZADD", "sorted set", "1", "a")
	m.Must("HSET", "hash", "a", "a")
	m.Must("RPUSH", "two", "a", "a")
	m.Must("RPUSH", "one of two", "aa")
	m.Must("HSET", "field", "aa", "a")
	m.Must("HSET", "value", "a", "aa")
	m.Must("XGROUP", "CREATE", "stream", "a", "$", "MKSTREAM")
	seen := map[string][]byte{}
	for _, key := range []string{"string", "list", "set", "sorted set", "hash", "two", "one of two", "field", "value", "stream", "absent"} {
		dump := m.Dump(key)
		for other, dumped := range seen {
			if Same(dump, dumped) {
				t.Errorf("%s is the same as %s", key, other)
			}
		}
		seen[key] = dump
	}
}

// A stream is its bytes: entries of the same IDs are the same state, and what a
// master's own clock is in is another one on each.
func TestStreamsAreTheSameByTheirBytes(t *testing.T) {
	m := livetest.Start(t)
	build := func(commands ...string) []byte {
		t.Helper()
		m.Must("DEL", "k")
		for _, command := range commands {
			m.Must(strings.Fields(command)...)
		}
		return m.Dump("k")
	}
	a := build("XADD k 1-1 f v", "XADD k 2-1 f v")
	if v := Read(a); v.Kind != Unknown {
		t.Errorf("it is read as a %v", v.Kind)
	}
	if !Same(a, build("XADD k 1-1 f v", "XADD k 2-1 f v")) {
		t.Error("equal streams are not the same")
	}
	for _, other := range [][]string{
		{"XADD k 1-1 f v", "XADD k 3-1 f v"},
		{"XADD k 1-1 f v", "XADD k 2-1 f w"},
		{"XADD k 1-1 f v", "XADD k 2-1 f v", "XGROUP CREATE k workers 0"},
		{"XADD k 1-1 f v", "XADD k 2-1 f v", "XADD k 3-1 f v", "XDEL k 3-1"},
	} {
		if Same(a, build(other...)) {
			t.Errorf("%q is the same", other)
		}
	}
}
