package console

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/wire"
)

func TestClients(t *testing.T) {
	c := testConsole()
	client := enter(c)
	client.Introduce(events.Identity{Name: "worker", User: "alice", DB: 2, RESP: 3})
	idle := "*1\r\n%15\r\n$2\r\nid\r\n:3\r\n$4\r\naddr\r\n$10\r\n10.0.0.3:1\r\n$4\r\nname\r\n$6\r\nworker\r\n$4\r\nuser\r\n$5\r\nalice\r\n$2\r\ndb\r\n:2\r\n$4\r\nresp\r\n:3\r\n$8\r\nlib-name\r\n$0\r\n\r\n$7\r\nlib-ver\r\n$0\r\n\r\n$6\r\nage-ms\r\n"
	rest := "$7\r\nidle-ms\r\n:0\r\n$11\r\nlocks-taken\r\n:0\r\n$8\r\nwaits-on\r\n$6\r\nnobody\r\n$9\r\nwaits-for\r\n$0\r\n\r\n$13\r\nwaits-for-key\r\n$0\r\n\r\n$8\r\nwaits-ms\r\n_\r\n"
	if got := ask(c, "REDLOCK CLIENTS", wire.RESP3); !strings.HasPrefix(got, idle) || !strings.HasSuffix(got, rest) {
		t.Errorf("got %q", got)
	}
	client.Begin("set", []byte("lock:a"), time.Now())
	if got := ask(c, "REDLOCK CLIENTS", wire.RESP2); !strings.Contains(got, "$9\r\nwaits-for\r\n$3\r\nset\r\n$13\r\nwaits-for-key\r\n$6\r\nlock:a\r\n$8\r\nwaits-ms\r\n:") {
		t.Errorf("got %q", got)
	}
}

// HOT leaves out keys that are no lock keys any more.
func TestHot(t *testing.T) {
	c := testConsole()
	for key, db := range map[string]int{"lock:a": 0, "secret:a": 3, "other": 0} {
		c.Journal.Note(events.KeyEvent{DB: db, Key: []byte(key), Verdict: events.Refused, At: time.Now()})
	}
	first := "*8\r\n$3\r\nkey\r\n$6\r\nlock:a\r\n$2\r\ndb\r\n:0\r\n$7\r\nrefused\r\n:1\r\n$11\r\ntoo-high-by\r\n:0\r\n"
	second := "*8\r\n$3\r\nkey\r\n$8\r\nsecret:a\r\n$2\r\ndb\r\n:3\r\n$7\r\nrefused\r\n:1\r\n$11\r\ntoo-high-by\r\n:0\r\n"
	if got, want := ask(c, "REDLOCK HOT", wire.RESP2), "*2\r\n"+first+second; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// SLOWLOG answers as Redis's own does.
func TestSlowlog(t *testing.T) {
	c := testConsole()
	for _, key := range []string{"lock:a", "lock:b"} {
		c.Journal.NoteSlow(events.SlowCommand{Took: 1500 * time.Microsecond, Command: "get", Key: key, Arguments: 1, At: time.Unix(1_800_000_000, 0)}, nil)
	}
	second := "*6\r\n:1\r\n:1800000000\r\n:1500\r\n*2\r\n$3\r\nget\r\n$6\r\nlock:b\r\n$0\r\n\r\n$0\r\n\r\n"
	first := strings.NewReplacer(":1\r\n:18", ":0\r\n:18", "lock:b", "lock:a").Replace(second)
	for _, row := range []struct{ line, want string }{
		{"REDLOCK SLOWLOG LEN", ":2\r\n"},
		{"REDLOCK SLOWLOG GET", "*2\r\n" + second + first},
		{"redlock slowlog get 1", "*1\r\n" + second},
		{"REDLOCK SLOWLOG GET -1", "*2\r\n" + second + first},
		{"REDLOCK SLOWLOG GET 9223372036854775807", "*2\r\n" + second + first},
		{"REDLOCK SLOWLOG GET 0", "*0\r\n"},
		{"REDLOCK SLOWLOG GET -2", "-ERR count should be greater than or equal to -1\r\n"},
		{"REDLOCK SLOWLOG GET x", "-ERR count should be greater than or equal to -1\r\n"},
		{"REDLOCK SLOWLOG GET 1 2", "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try REDLOCK HELP.\r\n"},
		{"REDLOCK SLOWLOG FOO", "-ERR unknown subcommand or wrong number of arguments for 'FOO'. Try REDLOCK HELP.\r\n"},
		{"REDLOCK SLOWLOG " + strings.Repeat("x", 1000), "-ERR unknown subcommand or wrong number of arguments for '" + strings.Repeat("x", 128) + "'. Try REDLOCK HELP.\r\n"},
		{"REDLOCK SLOWLOG", "-ERR wrong number of arguments for 'redlock|slowlog' command\r\n"},
		{"REDLOCK SLOWLOG RESET", "+OK\r\n"},
		{"REDLOCK SLOWLOG LEN", ":0\r\n"},
	} {
		if got := ask(c, row.line, wire.RESP2); got != row.want {
			t.Errorf("%s: got %q, want %q", row.line, got, row.want)
		}
	}
}
