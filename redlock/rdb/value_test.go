package rdb

import (
	"slices"
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
