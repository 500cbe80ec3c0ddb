package effect

import (
	"bytes"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// What its keys hold, before and after, and what each command may show of one of them is bounded. If it
// is more, nothing runs, and nothing stays of that.
func TestBoundedExaminations(t *testing.T) {
	m := livetest.Start(t)
	m.Must("SET", "string", strings.Repeat("x", 1000))
	m.Must("SET", "short", "v")
	m.Must("RPUSH", "list", "a", "b", "c")
	list := int64(len(m.Dump("list")))
	append1 := args("APPEND string y")
	for _, row := range []struct {
		keys     string
		commands [][][]byte
		holds    int64
		resp3    bool
	}{
		{"string", [][][]byte{append1}, 3000, false},
		{"string", [][][]byte{append1}, 3000, true},
		{"string short", [][][]byte{append1}, 3002, false},
		{"string", [][][]byte{append1, append1}, 4000, false},
		{"string", nil, 2000, false},
		{"list", [][][]byte{args("LLEN list")}, 3 * list, false},
		{"none", [][][]byte{args("GET none")}, 0, false},
	} {
		e := &Examination{Keys: args(row.keys), Commands: row.commands, Transaction: len(row.commands) > 1, RESP3: row.resp3, Bounded: true}
		m.Must("SET", "string", strings.Repeat("x", 1000))
		for _, most := range []int64{row.holds, row.holds - 1} {
			before := m.Dump("string")
			x, err := e.Parse(m.Ask(e.Append(nil, most), e.Replies()))
			ran := !bytes.Equal(m.Dump("string"), before)
			if fits := most == row.holds; err != nil || x.TooLarge == fits || !fits && (x.After != nil || x.Wrote() || ran || !bytes.Equal(x.Reply, errTooLarge)) || fits && x.After == nil {
				t.Errorf("%q with %d of %d bytes: %+v %v, ran: %v", row.keys, most, row.holds, x, err, ran)
			}
			m.Must("SET", "string", strings.Repeat("x", 1000))
		}
	}
	if keys := m.Must("DBSIZE"); string(keys) != ":3\r\n" {
		t.Errorf("there are %s keys", keys)
	}
}
