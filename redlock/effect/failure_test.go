package effect

import (
	"bytes"
	"cmp"
	"fmt"
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
		x, err := e.Parse(c.Ask(e.Append(nil, 0), e.Replies()))
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

// Everything between MULTI and EXEC is answered with QUEUED, except where a row says otherwise.
func TestParsedReplies(t *testing.T) {
	const (
		ok, queued = "+OK\r\n", "+QUEUED\r\n"
		no, noPerm = "-ERR no\r\n", "-NOPERM no\r\n"
		abort      = "-EXECABORT no\r\n"
		readOnly   = "-READONLY no\r\n"
	)
	// Two keys and two commands: TIME, PTTL k, PTTL l, DUMP k, DUMP l, the commands, and the look backwards.
	exec := func(first, second string) string {
		return "*12\r\n*2\r\n$1\r\n1\r\n$1\r\n0\r\n:10\r\n:20\r\n$1\r\na\r\n$1\r\nb\r\n" + first + second +
			"$1\r\nc\r\n$1\r\nd\r\n:30\r\n:40\r\n*2\r\n$1\r\n2\r\n$1\r\n0\r\n"
	}
	images := "a/10@1000 b/20@1000 c/30@2000 d/40@2000"
	for _, row := range []struct {
		name        string
		multi, exec string
		queued      map[int]string
		transaction bool
		want        string
	}{
		{"executed", ok, exec(":1\r\n", ":2\r\n"), nil, false, ":1 " + images},
		{"a transaction", ok, exec(":1\r\n", ":2\r\n"), nil, true, "*2 :1 :2 " + images},
		{"unable to write", ok, exec(readOnly, ":2\r\n"), nil, true, "*2 -READONLY no :2 failed " + images},
		{"WATCH", ok, "*-1\r\n", nil, true, "*-1 aborted"},
		{"EXEC refused", ok, noPerm, nil, false, "failed"},
		{"EXEC of a transaction refused", ok, noPerm, nil, true, "failed"},
		{"a command refused", ok, abort, map[int]string{5: no, 6: "-ERR other\r\n"}, false, "-ERR no queueing -ERR no"},
		{"a command of a transaction refused", ok, abort, map[int]string{6: no}, true, "-EXECABORT no queueing -ERR no"},
		{"a command not permitted", ok, abort, map[int]string{6: noPerm}, true, "failed"},
		{"the first look refused", ok, abort, map[int]string{4: no}, true, "failed"},
		{"the second look refused", ok, abort, map[int]string{7: no}, true, "failed"},
		{"queued without MULTI", ok, abort, map[int]string{5: ok}, false, "out of step"},
		{"the last TIME is no time", ok, strings.Replace(exec(ok, ok), "$1\r\n2", "$1\r\nx", 1), nil, false, "out of step"},
		{"the second PTTL refused", ok, strings.Replace(exec(ok, ok), ":40", "-ERR no", 1), nil, false, "+OK failed blind"},
		{"MULTI and the commands refused", noPerm, noPerm, map[int]string{5: noPerm, 6: noPerm}, false, "failed"},
		{"MULTI refused, a command run", noPerm, noPerm, map[int]string{5: noPerm, 6: ok}, false, "failed blind"},
	} {
		e := &Examination{Keys: [][]byte{[]byte("k"), []byte("l")}, Commands: [][][]byte{args("GET k"), args("GET l")}, Transaction: row.transaction}
		replies := [][]byte{[]byte(row.multi)}
		for i := range e.queued() {
			replies = append(replies, []byte(cmp.Or(row.queued[i], queued)))
		}
		replies = append(replies, []byte(row.exec))
		x, err := e.Parse(replies)
		for _, r := range replies { // the result owns its memory
			clear(r)
		}
		if got := spelt(x, err); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// spelt is how rows spell a result.
func spelt(x Result, err error) string {
	if err != nil {
		return "out of step"
	}
	words := strings.Fields(string(x.Reply))
	if x.QueueingError != nil {
		words = append(words, "queueing", strings.TrimSpace(string(x.QueueingError)))
	}
	if x.Aborted {
		words = append(words, "aborted")
	}
	if x.Failed {
		words = append(words, "failed")
	}
	if x.Blind {
		words = append(words, "blind")
	}
	for _, i := range slices.Concat(x.Before, x.After) {
		words = append(words, fmt.Sprintf("%s/%d@%d", i.Dump, i.PTTL, i.Now))
	}
	return strings.Join(words, " ")
}

// The stream is in RESP2 before and afterwards.
func TestAppendedExamination(t *testing.T) {
	e := &Examination{Keys: [][]byte{[]byte("k"), []byte("l")}, Commands: [][][]byte{args("GET k")}}
	const examined = "MULTI|TIME|PTTL k|PTTL l|DUMP k|DUMP l|GET k|DUMP k|DUMP l|PTTL k|PTTL l|TIME|EXEC"
	for resp3, want := range map[bool]string{false: examined, true: "HELLO 3|" + examined + "|HELLO 2"} {
		e.RESP3 = resp3
		var frames []byte
		for command := range strings.SplitSeq(want, "|") {
			frames = resp.AppendCommand(frames, strings.Fields(command)...)
		}
		if got := e.Append(nil, 0); !bytes.Equal(got, frames) {
			t.Errorf("RESP3 %v: %q", resp3, got)
		}
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
