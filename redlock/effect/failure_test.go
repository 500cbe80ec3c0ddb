package effect

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
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

// parsed is what a master's replies to an examination mean.
func parsed(words []string) string {
	e := &Examination{Keys: args("k l"), Commands: [][][]byte{args("GET k"), args("GET l")}}
	is := map[string]string{
		"multi": "+OK", "exec": "ran", "c1": ":1", "c2": ":2", "t1": "*2 $1 1 $1 0", "t2": "*2 $1 2 $1 0", "hello": "%0", "bye": "%0", "watch": "+OK", "check": ":0",
		"p1": ":10", "p2": ":20", "p3": ":30", "p4": ":40", "d1": "$1 a", "d2": "$1 b", "d3": "$1 c", "d4": "$1 d",
	}
	tooFew := false
	for _, word := range words {
		name, text, _ := strings.Cut(word, "=")
		is[name] = strings.ReplaceAll(text, "_", " ")
		e.Transaction = e.Transaction || name == "transaction"
		e.RESP3 = e.RESP3 || name == "hello"
		e.Bounded = e.Bounded || name == "check"
		tooFew = tooFew || name == "too-few"
	}
	lines := func(name string) string { // each word of what is no error is a line
		if strings.HasPrefix(is[name], "-") {
			return is[name] + "\r\n"
		}
		return strings.ReplaceAll(is[name], " ", "\r\n") + "\r\n"
	}
	exec := "*12\r\n"
	for name := range strings.FieldsSeq("t1 p1 p2 d1 d2 c1 c2 d3 d4 p3 p4 t2") {
		exec += lines(name)
	}
	if is["exec"] != "ran" {
		exec = lines("exec")
	}
	if cut, err := strconv.Atoi(is["cut"]); err == nil {
		exec = exec[:cut]
	}
	var replies [][]byte
	add := func(reply string) { replies = append(replies, []byte(reply)) }
	if e.Bounded {
		add(lines("watch"))
		add(lines("check"))
	}
	if e.RESP3 {
		add(lines("hello"))
	}
	add(lines("multi"))
	for i := range e.queued() {
		add(cmp.Or(is[strconv.Itoa(i)], "+QUEUED") + "\r\n")
	}
	add(exec)
	if e.RESP3 {
		add(lines("bye"))
	}
	if tooFew {
		replies = replies[1:]
	}
	x, err := e.Parse(replies)
	for _, r := range replies { // the result owns its memory
		clear(r)
	}
	return spelt(x, err)
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
	if x.TooLarge {
		words = append(words, "too large")
	}
	for _, i := range slices.Concat(x.Before, x.After) {
		words = append(words, cmp.Or(string(i.Dump), "-")+fmt.Sprintf("/%d@%d", i.PTTL, i.Now))
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
