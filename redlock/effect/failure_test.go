package effect

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
)

// A master that cannot serve has no vote, whatever its error looks like to the client.
func TestExaminedFailures(t *testing.T) {
	set := [][][]byte{args("SET k v")}
	check := func(name string, c *livetest.Conn, e *Examination, images, blind bool) {
		t.Helper()
		e.Keys = [][]byte{[]byte("k")}
		x, err := e.Parse(c.Ask(e.Append(nil), e.Replies()))
		if err != nil || !x.Failed || x.Blind != blind || (x.Before != nil) != images {
			t.Errorf("%s: %v, %+v", name, err, x)
		}
	}
	m := livetest.Start(t)

	m.Must("CONFIG", "SET", "maxmemory", "1")
	check("out of memory", m.Conn, &Examination{Commands: set}, false, false)
	m.Must("CONFIG", "SET", "maxmemory", "0")

	m.Must("REPLICAOF", "127.0.0.1", "1")
	check("a replica", m.Conn, &Examination{Commands: set}, false, false)
	check("a replica, in a transaction", m.Conn, &Examination{Commands: set, Transaction: true, RESP3: true}, false, false)
	check("a replica, in a script", m.Conn, &Examination{Commands: [][][]byte{evalOf("return redis.call('SET', KEYS[1], 1)")}}, true, false)
	m.Must("REPLICAOF", "NO", "ONE")

	for user, rules := range map[string]struct {
		rules         string
		images, blind bool
	}{
		"no-set":   {"-set", false, false},
		"no-dump":  {"-dump", false, false},
		"no-multi": {"-multi", false, true},
		"no-exec":  {"-exec", false, false},
		"nothing":  {"-@all", false, false},
	} {
		m.Must("ACL", "SETUSER", user, "on", "nopass", "~*", "+@all", rules.rules)
		c := m.Dial()
		c.Do("AUTH", user, "any")
		m.Must("DEL", "k")
		check(user, c, &Examination{Commands: set, RESP3: true}, rules.images, rules.blind)
		if ran := !look(t, m.Conn, "k").Absent(); ran != (rules.blind || rules.images) {
			t.Errorf("%s: whether it was run, %v, is not what is told", user, ran)
		}
	}

	m.Must("CONFIG", "SET", "requirepass", "secret")
	check("not authenticated", m.Dial(), &Examination{Commands: set}, false, false)
	check("not authenticated, RESP3", m.Dial(), &Examination{Commands: set, RESP3: true}, false, false)
	m.Must("CONFIG", "SET", "requirepass", "")

	m.Must("CONFIG", "SET", "busy-reply-threshold", "1")
	busy := m.Dial()
	busy.Send(resp.AppendCommand(nil, "EVAL", "while true do end", "0"))
	for !bytes.HasPrefix(m.Do("GET", "k"), []byte("-BUSY")) {
	}
	check("busy", m.Conn, &Examination{Commands: set}, false, false)
	m.Must("SCRIPT", "KILL")
}

// Replies that no server gives; the stream they came from must not be used.
func TestExaminationOutOfStep(t *testing.T) {
	e := &Examination{Keys: [][]byte{[]byte("k")}, Commands: [][][]byte{args("GET k")}}
	good := []string{"+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "+QUEUED\r\n",
		"*7\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n:-1\r\n$1\r\nd\r\n$1\r\nv\r\n$1\r\nd\r\n:-1\r\n*2\r\n$1\r\n1\r\n$4\r\n2000\r\n"}
	parse := func(change func(replies [][]byte) [][]byte) (Result, error) {
		var replies [][]byte
		for _, r := range good {
			replies = append(replies, []byte(r))
		}
		return e.Parse(change(replies))
	}
	replace := func(i int, reply string) func([][]byte) [][]byte {
		return func(r [][]byte) [][]byte { r[i] = []byte(reply); return r }
	}
	x, err := parse(func(r [][]byte) [][]byte { return r })
	if err != nil || string(x.Reply) != "$1\r\nv\r\n" || x.Before[0].Now != 1000 || x.After[0].Now != 1002 {
		t.Fatalf("%v, %+v", err, x)
	}
	for name, change := range map[string]func([][]byte) [][]byte{
		"one too few":           func(r [][]byte) [][]byte { return r[1:] },
		"none":                  func(r [][]byte) [][]byte { return nil },
		"MULTI queued":          replace(0, "+QUEUED\r\n"),
		"run at once":           replace(4, "$1\r\nv\r\n"),
		"refused, yet executed": replace(4, "-ERR no\r\n"),
		"unable, yet executed":  replace(1, "-NOPERM no\r\n"),
		"EXEC of too few":       replace(8, "*1\r\n$1\r\nv\r\n"),
		"EXEC of another type":  replace(8, "+OK\r\n"),
		"EXEC cut":              replace(8, good[8][:40]),
		"TIME is no time":       replace(8, strings.Replace(good[8], "$1\r\n1", "$1\r\nx", 1)),
		"TIME of one part":      replace(8, strings.Replace(good[8], "*2\r\n$1\r\n1\r\n", "*1\r\n", 1)),
	} {
		if x, err := parse(change); err == nil {
			t.Errorf("%s: %+v", name, x)
		}
	}
	e.RESP3 = true
	const hello, no = "%0\r\n", "-NOPROTO no\r\n"
	for _, row := range []struct {
		first, last string
		failed      bool
		err         error
	}{
		{hello, hello, false, nil},
		{hello, no, false, errExamination}, // it stays in RESP3
		{no, no, true, nil},                // what was run has answered in RESP2
	} {
		replies := [][]byte{[]byte(row.first)}
		for _, r := range append(slices.Clone(good), row.last) {
			replies = append(replies, []byte(r))
		}
		x, err := e.Parse(replies)
		if err != row.err || x.Failed != row.failed || err == nil && len(x.After) != 1 {
			t.Errorf("HELLO answered %q and %q: %v, %+v", row.first, row.last, err, x)
		}
	}
	e.RESP3 = false
	for name, change := range map[string]func([][]byte) [][]byte{
		"DUMP refused":  replace(8, strings.Replace(good[8], "$1\r\nd", "-WRONGTYPE no", 1)), // an embedded master's stream
		"DUMP in blobs": replace(8, strings.Replace(good[8], "$1\r\nd", "!2\r\nno", 1)),
		"PTTL refused":  replace(8, strings.Replace(good[8], ":-1", "-ERR no", 1)),
	} {
		if x, err := parse(change); err != nil || !x.Failed || !x.Blind || x.Before != nil {
			t.Errorf("%s: %v, %+v", name, err, x)
		}
	}
	x, err = parse(replace(8, strings.Replace(good[8], ":-1", ":-2", 1)))
	if err != nil || !x.Before[0].Absent() || x.Before[0].PTTL != NoKey {
		t.Errorf("a key that expired before its DUMP was read: %v, %+v", err, x)
	}
}

func FuzzParseExamined(f *testing.F) {
	f.Add(uint8(1), uint8(1), false, false, []byte("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"+
		"*7\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n:-1\r\n$1\r\nd\r\n$1\r\nv\r\n$1\r\nd\r\n:-1\r\n*2\r\n$1\r\n1\r\n$4\r\n2000\r\n"))
	f.Add(uint8(0), uint8(1), true, true, []byte("%0\r\n+OK\r\n+QUEUED\r\n-ERR no\r\n+QUEUED\r\n-EXECABORT no\r\n*0\r\n"))
	f.Add(uint8(0), uint8(1), false, false, []byte("-NOAUTH no\r\n-NOAUTH no\r\n+OK\r\n-NOAUTH no\r\n-NOAUTH no\r\n"))
	f.Fuzz(func(t *testing.T, keys, commands uint8, transaction, resp3 bool, stream []byte) {
		e := &Examination{
			Keys: make([][]byte, keys%4), Commands: make([][][]byte, commands%4),
			Transaction: transaction, RESP3: resp3,
		}
		var replies [][]byte
		var scanner resp.Scanner
		for len(stream) > 0 {
			n, done, err := scanner.Scan(stream)
			if err != nil || !done {
				break
			}
			replies = append(replies, stream[:n])
			stream = stream[n:]
		}
		for len(replies) < e.Replies() {
			replies = append(replies, []byte("+QUEUED\r\n"))
		}
		x, err := e.Parse(replies[:e.Replies()])
		if err == nil && x.Reply == nil && !x.Failed && len(e.Commands) > 0 {
			t.Errorf("neither a reply nor a failure: %+v", x)
		}
		if len(x.Before) != len(x.After) || x.Blind && !x.Failed {
			t.Errorf("inconsistent: %+v", x)
		}
		for i := range x.Before {
			AppendUndo(nil, nil, x.Before[i], x.After[i])
		}
	})
}
