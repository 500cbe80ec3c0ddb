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

// Nothing ran because of the bound only if the check says so and EXEC was aborted.
func TestWhatABoundKeptFromRunning(t *testing.T) {
	e := &Examination{Keys: args("k"), Commands: [][][]byte{args("GET k")}, Bounded: true}
	ran := "*7\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n:-2\r\n$-1\r\n$-1\r\n$-1\r\n:-2\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n"
	for _, row := range []struct {
		check, exec string
		tooLarge    bool
		aborted     bool
	}{
		{":1\r\n", "*-1\r\n", true, false},
		{":0\r\n", "*-1\r\n", false, true},
		{":1\r\n", ran, false, false},
		{":0\r\n", ran, false, false},
	} {
		replies := [][]byte{[]byte("+OK\r\n"), []byte(row.check), []byte("+OK\r\n")}
		for range e.queued() {
			replies = append(replies, []byte("+QUEUED\r\n"))
		}
		x, err := e.Parse(append(replies, []byte(row.exec)))
		if err != nil || x.TooLarge != row.tooLarge || x.Aborted != row.aborted || bytes.Equal(x.Reply, errTooLarge) != row.tooLarge || (x.After != nil) != (row.exec == ran) {
			t.Errorf("%q, %q: %+v %v", row.check, row.exec, x, err)
		}
	}
}
