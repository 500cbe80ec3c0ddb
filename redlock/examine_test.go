package redlock

import (
	"bytes"
	"strings"
	"testing"

	"redlock-proxy/redlock/resp"
)

// args splits a command at spaces; "" stands for an empty argument.
func args(command string) [][]byte {
	var list [][]byte
	for word := range strings.SplitSeq(command, " ") {
		list = append(list, []byte(strings.Trim(word, `"`)))
	}
	return list
}

func strs(list [][]byte) []string {
	var out []string
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

// examine runs an examination on a connection.
func (c *liveConn) examine(e *examination) examined {
	c.t.Helper()
	replies := c.ask(e.append(nil), e.replies())
	x, err := e.parse(replies)
	if err != nil {
		c.t.Fatalf("%v: %q", err, replies)
	}
	if got := c.do("PING"); string(got) != "+PONG\r\n" {
		c.t.Fatalf("the stream is out of step: %q", got)
	}
	return x
}

func evalOf(text string) [][]byte {
	return [][]byte{[]byte("EVAL"), []byte(text), []byte("1"), []byte("k"), []byte("token")}
}

var setup = [][]string{
	{"SET", "string", "v"}, {"HSET", "hash", "f", "v", "g", "1"}, {"ZADD", "sortedset", "1", "m", "2.5", "n"},
	{"SADD", "set", "m"}, {"RPUSH", "list", "a", "b"}, {"SET", "k", "token", "PX", "100000"},
}

// The client gets what its own server would have said, to the last byte.
func TestExaminedReplies(t *testing.T) {
	m := startLiveMaster(t)
	commands := [][][]byte{
		args("GET string"), args("GET none"), args("GET hash"), args("SET none v"), args("INCR string"),
		args("HGETALL hash"), args("HINCRBYFLOAT hash g 0.5"), args("ZRANGE sortedset 0 -1 WITHSCORES"),
		args("ZADD sortedset INCR 1 m"), args("SMEMBERS set"), args("LRANGE list 0 -1"), args("LPOP list 2"), args("LPOP none 2"),
		args("BLPOP none 0"), args("OBJECT ENCODING hash"), args("HRANDFIELD hash 0"), args("TYPE list"),
		args("DEBUG PROTOCOL double"), args("SET string"), args("NOSUCH string"), args("EVALSHA 0123 1 k"), args("SETEX k 0 v"),
		evalOf("return {1, 'two', false, {err = 'THREE words'}, {ok = 'fine'}, {1, {2}}}"),
		evalOf("return redis.error_reply('ERROR')"), evalOf("return redis.error_reply('BUSY taken')"),
		evalOf("redis.setresp(3); return redis.call('HGETALL', 'hash')"), evalOf("redis.setresp(3) return {double = 2.5}"),
		evalOf("redis.setresp(3) return true"), evalOf("return true"), evalOf("return false"), evalOf("nonsense"),
		evalOf("return redis.call('INCR', 'hash')"), evalOf("return redis.pcall('NOSUCH')"),
	}
	for _, resp3 := range []bool{false, true} {
		for _, command := range commands {
			var want, reply []byte
			for _, examine := range []bool{false, true} {
				c := m.dial()
				c.do("FLUSHALL")
				for _, s := range setup {
					c.do(s...)
				}
				if !examine {
					if resp3 {
						c.do("HELLO", "3")
					}
					// BLPOP and the like do not block in MULTI.
					if string(command[0]) == "BLPOP" {
						c.do("MULTI")
						c.do(strs(command)...)
						results, _ := resp.Elements(c.do("EXEC"))
						want = results[0]
						continue
					}
					want = c.do(strs(command)...)
					continue
				}
				x := c.examine(&examination{keys: [][]byte{[]byte("k"), []byte("string")}, commands: [][][]byte{command}, resp3: resp3})
				reply = x.reply
				if x.failed || x.aborted || x.blind {
					t.Errorf("%q: %+v", command, x)
				}
				if (x.queueingError != nil) != (x.before == nil) || len(x.before) != len(x.after) {
					t.Errorf("%q: refused as %q, %d images", command, x.queueingError, len(x.before))
				}
			}
			if !bytes.Equal(reply, want) {
				t.Errorf("%q, RESP3 %v: %q, a plain server says %q", command, resp3, reply, want)
			}
		}
	}
}

func TestExaminedImages(t *testing.T) {
	m := startLiveMaster(t)
	for _, row := range []struct {
		name, before, script string
		want                 effect
	}{
		{"stays absent", "", "return redis.call('GET', KEYS[1])", keyStayedAbsent},
		{"acquired", "", "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 100000)", keyCreated},
		{"acquired, no TTL", "", "return redis.call('SET', KEYS[1], ARGV[1])", keyCreated},
		{"read", "1", "return redis.call('GET', KEYS[1])", keyKept},
		{"written as it was", "1", "return redis.call('SET', KEYS[1], '1', 'KEEPTTL')", keyKept},
		{"changed", "1", "return redis.call('SET', KEYS[1], ARGV[1])", keyChanged},
		{"changed in type", "1", "redis.call('DEL', KEYS[1]) redis.call('SADD', KEYS[1], 1)", keyChanged},
		{"extended", "1", "return redis.call('PEXPIRE', KEYS[1], 200000)", keyMoved},
		{"made permanent", "1", "return redis.call('PERSIST', KEYS[1])", keyMoved},
		{"deleted", "1", "return redis.call('DEL', KEYS[1])", keyDeleted},
		{"expired by command", "1", "return redis.call('PEXPIRE', KEYS[1], -1)", keyDeleted},
		{"kept by one that fails", "1", "redis.call('INCR', KEYS[1]) redis.call('DECR', KEYS[1]) error('no')", keyKept},
		{"changed by one that fails", "1", "redis.call('INCR', KEYS[1]) error('no')", keyChanged},
		// Up to Redis 7.0 time goes on while the script runs.
		{"kept by a slow one", "1", "local t = redis.call('TIME')[2] for i = 1, 3e6 do end", keyKept},
	} {
		t.Run(row.name, func(t *testing.T) {
			m.must("DEL", "k", "other")
			if row.before != "" {
				m.must("SET", "k", row.before, "PX", "100000")
			}
			m.must("SET", "other", "o")
			was := m.conn.look("k")
			e := &examination{keys: [][]byte{[]byte("other"), []byte("k")}, commands: [][][]byte{evalOf(row.script)}}
			x := m.conn.examine(e)
			if len(x.before) != 2 || len(x.after) != 2 {
				t.Fatalf("%+v", x)
			}
			if got := change(x.before[1], x.after[1]); got != row.want {
				t.Errorf("%v, want %v: %+v then %+v", got, row.want, x.before[1], x.after[1])
			}
			if got := change(x.before[0], x.after[0]); got != keyKept {
				t.Errorf("the other key was %v", got)
			}
			// The server may be held up while it looks.
			held := x.after[1].now - x.before[1].now + expiryTolerance
			for _, pair := range [][2]image{{was, x.before[1]}, {m.conn.look("k"), x.after[1]}} {
				if !bytes.Equal(pair[0].dump, pair[1].dump) || !near(pair[0].expiry(), pair[1].expiry(), held) {
					t.Errorf("%+v is seen as %+v", pair[0], pair[1])
				}
			}
			if row.want.wrote() && held <= expiryTolerance+1 {
				frames := appendUndo(nil, []byte("k"), x.before[1], x.after[1])
				if got := m.conn.ask(frames, 1)[0]; string(got) != undone {
					t.Errorf("undo answered %q", got)
				}
				if !sameImage(m.conn.look("k"), was) {
					t.Error("the undo left another state")
				}
			}
		})
	}
}

func TestExaminedTransaction(t *testing.T) {
	m := startLiveMaster(t)
	for _, resp3 := range []bool{false, true} {
		m.must("DEL", "k")
		e := &examination{
			keys:        [][]byte{[]byte("k")},
			commands:    [][][]byte{args("SET k v NX"), args("GET none"), args("INCR k"), args("HGETALL none")},
			transaction: true,
			resp3:       resp3,
		}
		x := m.conn.examine(e)
		want := "*4\r\n+OK\r\n$-1\r\n-ERR value is not an integer or out of range\r\n*0\r\n"
		if resp3 {
			want = "*4\r\n+OK\r\n_\r\n-ERR value is not an integer or out of range\r\n%0\r\n"
		}
		if string(x.reply) != want || x.failed || change(x.before[0], x.after[0]) != keyCreated {
			t.Errorf("%q: %+v", x.reply, x)
		}

		e.commands = [][][]byte{args("GET k")}
		if x := m.conn.examine(e); string(x.reply) != "*1\r\n$1\r\nv\r\n" {
			t.Errorf("of one command: %q", x.reply)
		}

		e.commands = [][][]byte{args("DEL k"), args("NOSUCH k"), args("GET")}
		x = m.conn.examine(e)
		if !bytes.HasPrefix(x.reply, []byte("-EXECABORT ")) || !bytes.HasPrefix(x.queueingError, []byte("-ERR unknown command 'NOSUCH'")) ||
			x.failed || x.before != nil || m.conn.look("k").absent() {
			t.Errorf("refused: %q, %+v", x.reply, x)
		}

		e.commands = [][][]byte{args("DEL k")}
		m.must("WATCH", "k")
		m.dial().do("SET", "k", "other")
		x = m.conn.examine(e)
		null := "*-1\r\n"
		if resp3 {
			null = "_\r\n"
		}
		if !x.aborted || string(x.reply) != null || x.failed || x.before != nil {
			t.Errorf("aborted: %+v", x)
		}
	}
}

func TestExaminationOfNothing(t *testing.T) {
	m := startLiveMaster(t)
	m.must("SET", "k", "v", "PX", "100000")
	x := m.conn.examine(&examination{keys: [][]byte{[]byte("k"), []byte("none")}})
	if x.failed || x.reply != nil || !sameImage(x.before[0], m.conn.look("k")) || !x.before[1].absent() ||
		change(x.before[0], x.after[0]) != keyKept || change(x.before[1], x.after[1]) != keyStayedAbsent {
		t.Errorf("%+v", x)
	}
}

// What was parsed outlives the stream's buffer.
func TestExaminedOwnsItsMemory(t *testing.T) {
	m := startLiveMaster(t)
	for _, command := range []string{"SET k value", "SET k", "GET k"} {
		e := &examination{keys: [][]byte{[]byte("k")}, commands: [][][]byte{args(command)}}
		replies := m.conn.ask(e.append(nil), e.replies())
		x, err := e.parse(replies)
		if err != nil {
			t.Fatal(err)
		}
		reply := string(x.reply)
		dump := bytes.Clone(m.dump("k"))
		for _, r := range replies {
			for i := range r {
				r[i] = 'x'
			}
		}
		if string(x.reply) != reply || len(x.after) > 0 && !bytes.Equal(x.after[0].dump, dump) || bytes.HasPrefix(x.queueingError, []byte("x")) {
			t.Errorf("%s: it changed with the buffer: %+v", command, x)
		}
	}
}
