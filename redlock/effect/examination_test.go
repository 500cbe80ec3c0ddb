package effect

import (
	"bytes"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
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

// examined runs an examination on a connection.
func examined(t *testing.T, c *livetest.Conn, e *Examination) Result {
	replies := c.Ask(e.Append(nil, 0), e.Replies())
	x, err := e.Parse(replies)
	if err != nil {
		t.Fatalf("%v: %q", err, replies)
	}
	if got := c.Do("PING"); string(got) != "+PONG\r\n" {
		t.Fatalf("the stream is out of step: %q", got)
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
	m := livetest.Start(t)
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
				c := m.Dial()
				c.Do("FLUSHALL")
				for _, s := range setup {
					c.Do(s...)
				}
				if !examine {
					if resp3 {
						c.Do("HELLO", "3")
					}
					// BLPOP and the like do not block in MULTI.
					if string(command[0]) == "BLPOP" {
						c.Do("MULTI")
						c.Do(strs(command)...)
						results, _ := resp.Elements(c.Do("EXEC"))
						want = results[0]
						continue
					}
					want = c.Do(strs(command)...)
					continue
				}
				x := examined(t, c, &Examination{Keys: [][]byte{[]byte("k"), []byte("string")}, Commands: [][][]byte{command}, RESP3: resp3})
				reply = x.Reply
				if x.Failed || x.Aborted || x.Blind {
					t.Errorf("%q: %+v", command, x)
				}
				if (x.QueueingError != nil) != (x.Before == nil) || len(x.Before) != len(x.After) {
					t.Errorf("%q: refused as %q, %d images", command, x.QueueingError, len(x.Before))
				}
			}
			if !bytes.Equal(reply, want) {
				t.Errorf("%q, RESP3 %v: %q, a plain server says %q", command, resp3, reply, want)
			}
		}
	}
}

func TestExaminedImages(t *testing.T) {
	m := livetest.Start(t)
	for _, row := range []struct {
		name, before, script string
		want                 Change
	}{
		{"stays absent", "", "return redis.call('GET', KEYS[1])", StayedAbsent},
		{"acquired", "", "return redis.call('SET', KEYS[1], ARGV[1], 'PX', 100000)", Created},
		{"acquired, no TTL", "", "return redis.call('SET', KEYS[1], ARGV[1])", Created},
		{"read", "1", "return redis.call('GET', KEYS[1])", Kept},
		{"written as it was", "1", "return redis.call('SET', KEYS[1], '1', 'KEEPTTL')", Kept},
		{"changed", "1", "return redis.call('SET', KEYS[1], ARGV[1])", Changed},
		{"changed in type", "1", "redis.call('DEL', KEYS[1]) redis.call('SADD', KEYS[1], 1)", Changed},
		{"extended", "1", "return redis.call('PEXPIRE', KEYS[1], 200000)", Moved},
		{"made permanent", "1", "return redis.call('PERSIST', KEYS[1])", Moved},
		{"deleted", "1", "return redis.call('DEL', KEYS[1])", Deleted},
		{"expired by command", "1", "return redis.call('PEXPIRE', KEYS[1], -1)", Deleted},
		{"kept by one that fails", "1", "redis.call('INCR', KEYS[1]) redis.call('DECR', KEYS[1]) error('no')", Kept},
		{"changed by one that fails", "1", "redis.call('INCR', KEYS[1]) error('no')", Changed},
		// Up to Redis 7.0 time goes on while the script runs.
		{"kept by a slow one", "1", "local t = redis.call('TIME')[2] for i = 1, 3e6 do end", Kept},
	} {
		t.Run(row.name, func(t *testing.T) {
			m.Must("DEL", "k", "other")
			if row.before != "" {
				m.Must("SET", "k", row.before, "PX", "100000")
			}
			m.Must("SET", "other", "o")
			was := look(t, m.Conn, "k")
			e := &Examination{Keys: [][]byte{[]byte("other"), []byte("k")}, Commands: [][][]byte{evalOf(row.script)}}
			x := examined(t, m.Conn, e)
			if len(x.Before) != 2 || len(x.After) != 2 {
				t.Fatalf("%+v", x)
			}
			if got := Compare(x.Before[1], x.After[1]); got != row.want {
				t.Errorf("%v, want %v: %+v then %+v", got, row.want, x.Before[1], x.After[1])
			}
			if got := Compare(x.Before[0], x.After[0]); got != Kept {
				t.Errorf("the other key was %v", got)
			}
			// The server may be held up while it looks.
			held := x.After[1].Now - x.Before[1].Now + resp.ExpiryTolerance
			for _, pair := range [][2]Image{{was, x.Before[1]}, {look(t, m.Conn, "k"), x.After[1]}} {
				if !bytes.Equal(pair[0].Dump, pair[1].Dump) || !Near(pair[0].Expiry(), pair[1].Expiry(), held) {
					t.Errorf("%+v is seen as %+v", pair[0], pair[1])
				}
			}
			if row.want.Wrote() && held <= resp.ExpiryTolerance+1 {
				frames := AppendUndo(nil, []byte("k"), x.Before[1], x.After[1])
				if got := m.Ask(frames, 1)[0]; string(got) != undone {
					t.Errorf("undo answered %q", got)
				}
				if !sameImage(look(t, m.Conn, "k"), was) {
					t.Error("the undo left another state")
				}
			}
		})
	}
}

func TestExaminedTransaction(t *testing.T) {
	m := livetest.Start(t)
	for _, resp3 := range []bool{false, true} {
		m.Must("DEL", "k")
		e := &Examination{
			Keys:        [][]byte{[]byte("k")},
			Commands:    [][][]byte{args("SET k v NX"), args("GET none"), args("INCR k"), args("HGETALL none")},
			Transaction: true,
			RESP3:       resp3,
		}
		x := examined(t, m.Conn, e)
		want := "*4\r\n+OK\r\n$-1\r\n-ERR value is not an integer or out of range\r\n*0\r\n"
		if resp3 {
			want = "*4\r\n+OK\r\n_\r\n-ERR value is not an integer or out of range\r\n%0\r\n"
		}
		if string(x.Reply) != want || x.Failed || Compare(x.Before[0], x.After[0]) != Created {
			t.Errorf("%q: %+v", x.Reply, x)
		}

		e.Commands = [][][]byte{args("GET k")}
		if x := examined(t, m.Conn, e); string(x.Reply) != "*1\r\n$1\r\nv\r\n" {
			t.Errorf("of one command: %q", x.Reply)
		}

		e.Commands = [][][]byte{args("DEL k"), args("NOSUCH k"), args("GET")}
		x = examined(t, m.Conn, e)
		if !bytes.HasPrefix(x.Reply, []byte("-EXECABORT ")) || !bytes.HasPrefix(x.QueueingError, []byte("-ERR unknown command 'NOSUCH'")) ||
			x.Failed || x.Before != nil || look(t, m.Conn, "k").Absent() {
			t.Errorf("refused: %q, %+v", x.Reply, x)
		}

		e.Commands = [][][]byte{args("DEL k")}
		m.Must("WATCH", "k")
		m.Dial().Do("SET", "k", "other")
		x = examined(t, m.Conn, e)
		null := "*-1\r\n"
		if resp3 {
			null = "_\r\n"
		}
		if !x.Aborted || string(x.Reply) != null || x.Failed || x.Before != nil {
			t.Errorf("aborted: %+v", x)
		}
	}
}

func TestExaminationOfNothing(t *testing.T) {
	m := livetest.Start(t)
	m.Must("SET", "k", "v", "PX", "100000")
	x := examined(t, m.Conn, &Examination{Keys: [][]byte{[]byte("k"), []byte("none")}})
	if x.Failed || x.Reply != nil || !sameImage(x.Before[0], look(t, m.Conn, "k")) || !x.Before[1].Absent() ||
		Compare(x.Before[0], x.After[0]) != Kept || Compare(x.Before[1], x.After[1]) != StayedAbsent {
		t.Errorf("%+v", x)
	}
}

// What was parsed outlives the stream's buffer.
func TestExaminedOwnsItsMemory(t *testing.T) {
	m := livetest.Start(t)
	for _, command := range []string{"SET k value", "SET k", "GET k"} {
		e := &Examination{Keys: [][]byte{[]byte("k")}, Commands: [][][]byte{args(command)}}
		replies := m.Ask(e.Append(nil, 0), e.Replies())
		x, err := e.Parse(replies)
		if err != nil {
			t.Fatal(err)
		}
		reply := string(x.Reply)
		dump := bytes.Clone(m.Dump("k"))
		for _, r := range replies {
			for i := range r {
				r[i] = 'x'
			}
		}
		if string(x.Reply) != reply || len(x.After) > 0 && !bytes.Equal(x.After[0].Dump, dump) || bytes.HasPrefix(x.QueueingError, []byte("x")) {
			t.Errorf("%s: it changed with the buffer: %+v", command, x)
		}
	}
}
