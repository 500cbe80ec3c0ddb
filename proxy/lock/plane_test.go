package lock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

var (
	fakeLockerWon      = redlock.Outcome{Verdict: redlock.Won}
	fakeLockerLost     = redlock.Outcome{Verdict: redlock.Lost}
	fakeLockerNoQuorum = redlock.Outcome{Verdict: redlock.NoQuorum, Voting: 2, Answered: 2, Asked: 5, Needed: 3}
	fakeLockerRefused  = redlock.Outcome{Verdict: redlock.Won, Err: "WRONGTYPE Operation against a key holding the wrong kind of value"}
)

func fakeLockerValue(verdict redlock.Verdict, value string) redlock.Outcome {
	return redlock.Outcome{Verdict: verdict, Value: []byte(value)}
}

func fakeLockerReply(reply string) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won, Reply: []byte(reply)}
}

// TestCommandsBecomeRequests has a row for each command and outcome, with the request
// to the masters and the reply. The time is the second 946684800, at which every
// synctest bubble begins.
func TestCommandsBecomeRequests(t *testing.T) {
	const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
	const noQuorum = "-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n"
	rows := []struct {
		Command string
		outcome redlock.Outcome
		asked   string // of all requests, sorted and joined by "; "
		reply   string
		counted string // kind and verdict
	}{
		{"SET k v NX PX 10000", fakeLockerWon, "acquire 0 k v 10s", "+OK\r\n", "acquire won"},
		{"SET k v NX PX 10000", fakeLockerLost, "acquire 0 k v 10s", "$-1\r\n", "acquire lost"},
		{"SET k v NX PX 10000", fakeLockerNoQuorum, "acquire 0 k v 10s", noQuorum, "acquire noquorum"},
		{"REDLOCK TOKEN k v", redlock.Outcome{Verdict: redlock.Won, Number: 42}, "token 0 k v", ":42\r\n", "token won"},
		{"redlock token k v", fakeLockerLost, "token 0 k v", "$-1\r\n", "token lost"},
		{"REDLOCK TOKEN k v", fakeLockerNoQuorum, "token 0 k v", noQuorum, "token noquorum"},
		{"REDLOCK TOKEN k v", fakeLockerRefused, "token 0 k v", wrongType, "token error"},
		{"set k v ex 8 nx", fakeLockerWon, "acquire 0 k v 8s", "+OK\r\n", "acquire won"},
		{"SET k v NX", fakeLockerWon, "acquire 0 k v 0s", "+OK\r\n", "acquire won"},
		{"SET k v NX GET PX 5", fakeLockerWon, "acquire 0 k v 5ms get", "$-1\r\n", "acquire won"},
		{"SET k v NX GET PX 5", fakeLockerValue(redlock.Lost, "held"), "acquire 0 k v 5ms get", "$4\r\nheld\r\n", "acquire lost"},
		{"SET k v NX GET PX 5", fakeLockerLost, "acquire 0 k v 5ms get", string(errorHolderVanished), "acquire error"},
		{"SET k v NX GET PX 5", fakeLockerRefused, "acquire 0 k v 5ms get", wrongType, "acquire error"},
		{"SET k v NX GET PX 5", redlock.Outcome{Verdict: redlock.Lost, Err: fakeLockerRefused.Err}, "acquire 0 k v 5ms get", wrongType, "acquire error"},
		{"SET k v NX GET PX 5", fakeLockerNoQuorum, "acquire 0 k v 5ms get", noQuorum, "acquire noquorum"},
		{"SET k v NX PX 2", fakeLockerLost, "acquire 0 k v 2ms", "$-1\r\n", "acquire lost"},
		{"SET k v NX EXAT 946684810", fakeLockerWon, "acquire 0 k v 10s", "+OK\r\n", "acquire won"},
		{"SET k v NX PXAT 1", fakeLockerWon, "exists 0 k", "$-1\r\n", "read lost"},
		{"SET k v NX PXAT 1", fakeLockerLost, "exists 0 k", "+OK\r\n", "read won"},
		{"SET k v NX PXAT 1", fakeLockerNoQuorum, "exists 0 k", noQuorum, "read noquorum"},
		{"SET k v NX GET PXAT 1", fakeLockerValue(redlock.Won, "held"), "get 0 k", "$4\r\nheld\r\n", "read won"},
		{"SET k v NX PX 31557600000000", fakeLockerWon, "acquire 0 k v 876000h0m0s", "+OK\r\n", "acquire won"},
		{"SET k v NX EX 0", fakeLockerWon, "", "-ERR invalid expire time in 'set' command\r\n", "acquire error"},
		{"SET k v NX XX", fakeLockerWon, "", "-ERR syntax error\r\n", "acquire error"},
		{"SET k", fakeLockerWon, "", "-ERR wrong number of arguments for 'set' command\r\n", "run error"},
		{"SETNX k v", fakeLockerWon, "acquire 0 k v 0s", ":1\r\n", "acquire won"},
		{"SETNX k v", fakeLockerLost, "acquire 0 k v 0s", ":0\r\n", "acquire lost"},

		{"GETSET k v", fakeLockerReply("$3\r\nold\r\n"), "run 0 [GETSET k v] on [k]", "$3\r\nold\r\n", "swap won"},
		{"GETSET k v", fakeLockerNoQuorum, "run 0 [GETSET k v] on [k]", noQuorum, "swap noquorum"},
		{"SET k v GET XX KEEPTTL", fakeLockerReply("$0\r\n\r\n"), "run 0 [SET k v GET XX KEEPTTL] on [k]", "$0\r\n\r\n", "swap won"},
		{"SET k v EX 3 GET", fakeLockerReply("$-1\r\n"), "run 0 [SET k v EX 3 GET] on [k]", "$-1\r\n", "swap won"},
		{"SET k v GET EXAT 5", fakeLockerValue(redlock.Won, "old"), "release 0 k get", "$3\r\nold\r\n", "release won"},

		{"SET k v GET EX 0", fakeLockerWon, "", "-ERR invalid expire time in 'set' command\r\n", "swap error"},
		{"SET k v GET FAST", fakeLockerWon, "", "-ERR syntax error\r\n", "swap error"},
		{"SET k v GET IFEQ old", fakeLockerReply("$3\r\nold\r\n"), "run 0 [SET k v GET IFEQ old] on [k]", "$3\r\nold\r\n", "run won"},
		{"SET k v IFEQ old PX 2", fakeLockerReply("$-1\r\n"), "run 0 [SET k v IFEQ old PX 2] on [k]", "$-1\r\n", "run won"},
		{"SET k v IFNE old PXAT 1", fakeLockerReply("$-1\r\n"), "run 0 [SET k v IFNE old PXAT 1] on [k]", "$-1\r\n", "run won"},
		{"GETDEL k", redlock.Outcome{Verdict: redlock.NoQuorum, Err: fakeLockerRefused.Err, Voting: 2, Answered: 2, Asked: 5, Needed: 3}, "release 0 k get", noQuorum, "release noquorum"},
		{"GETEX k SOON 2", fakeLockerReply("-ERR syntax error\r\n"), "run 0 [GETEX k SOON 2] on [k]", "-ERR syntax error\r\n", "run won"},
		{"SORT k", fakeLockerReply("*0\r\n"), "run 0 [SORT k] on [k]", "*0\r\n", "run won"},
		{"SET k v", fakeLockerReply("+OK\r\n"), "run 0 [SET k v] on [k]", "+OK\r\n", "run won"},
		{"SET k v XX PX 5", fakeLockerReply("$-1\r\n"), "run 0 [SET k v XX PX 5] on [k]", "$-1\r\n", "run won"},
		{"SET k v xx exat 946684801", fakeLockerReply("+OK\r\n"), "run 0 [SET k v xx PX 1000] on [k]", "+OK\r\n", "run won"},
		{"SET k v EXAT 1", fakeLockerLost, "release 0 k", "+OK\r\n", "release lost"},
		{"SET k v XX EXAT 1", fakeLockerLost, "release 0 k", "$-1\r\n", "release lost"},
		{"SET k v IFEQ old PXAT 946684800500", fakeLockerReply("+OK\r\n"), "run 0 [SET k v IFEQ old PX 500] on [k]", "+OK\r\n", "run won"},
		{"SET k v NX IFEQ old", fakeLockerReply("-ERR syntax error\r\n"), "run 0 [SET k v NX IFEQ old] on [k]", "-ERR syntax error\r\n", "run won"},
		{"SETEX k 5 v", fakeLockerReply("+OK\r\n"), "run 0 [SETEX k 5 v] on [k]", "+OK\r\n", "run won"},
		{"PSETEX k 2 v", fakeLockerLost, "release 0 k", "+OK\r\n", "release lost"},
		{"SET k v PX 1 XX", fakeLockerLost, "release 0 k", "$-1\r\n", "release lost"},
		{"PSETEX k 3 v", fakeLockerReply("+OK\r\n"), "run 0 [PSETEX k 3 v] on [k]", "+OK\r\n", "run won"},
		{"PSETEX k 0 v", fakeLockerWon, "", "-ERR invalid expire time in 'psetex' command\r\n", "run error"},
		{"GETEX k PXAT 946684800500", fakeLockerReply("$1\r\nv\r\n"), "run 0 [GETEX k PX 500] on [k]", "$1\r\nv\r\n", "run won"},
		{"GETEX k EXAT 5", fakeLockerValue(redlock.Won, "v"), "release 0 k get", "$1\r\nv\r\n", "release won"},
		{"GETEX k PXAT 946684800002", fakeLockerValue(redlock.Won, "v"), "release 0 k get", "$1\r\nv\r\n", "release won"},
		{"GETEX k PX 2", fakeLockerLost, "release 0 k get", "$-1\r\n", "release lost"},
		{"GETEX k PX 3", fakeLockerReply("$1\r\nv\r\n"), "run 0 [GETEX k PX 3] on [k]", "$1\r\nv\r\n", "run won"},
		{"GETEX k PX 0", fakeLockerReply("-ERR x\r\n"), "run 0 [GETEX k PX 0] on [k]", "-ERR x\r\n", "run won"},

		{"EXPIRE k 5", fakeLockerWon, "extend 0 k 5s", ":1\r\n", "extend won"},
		{"PEXPIRE k 5 GT", fakeLockerLost, "extend 0 k 5ms if GT", ":0\r\n", "extend lost"},
		{"EXPIREAT k 946684805 nx", fakeLockerWon, "extend 0 k 5s if NX", ":1\r\n", "extend won"},
		{"PEXPIREAT k 946684800005", fakeLockerNoQuorum, "extend 0 k 5ms", noQuorum, "extend noquorum"},
		{"EXPIRE k 0", fakeLockerWon, "release 0 k", ":1\r\n", "release won"},
		{"PEXPIRE k 2", fakeLockerWon, "release 0 k", ":1\r\n", "release won"},
		{"EXPIREAT k 5", fakeLockerLost, "release 0 k", ":0\r\n", "release lost"},
		{"EXPIRE k -1 XX", fakeLockerReply(":1\r\n"), "run 0 [EXPIRE k -1 XX] on [k] deletes [k]", ":1\r\n", "run won"},
		{"EXPIREAT k 946684805 XX LT", fakeLockerReply(":0\r\n"), "run 0 [PEXPIRE k 5000 XX LT] on [k]", ":0\r\n", "run won"},
		{"EXPIRE k five", fakeLockerWon, "", "-ERR value is not an integer or out of range\r\n", "extend error"},
		{"PERSIST k", fakeLockerWon, "extend 0 k 0s persist", ":1\r\n", "extend won"},
		{"ttl k", redlock.Outcome{Verdict: redlock.Won, Number: 7}, "TTL 0 k", ":7\r\n", "read won"},
		{"PTTL k", redlock.Outcome{Verdict: redlock.Lost, Number: -2}, "PTTL 0 k", ":-2\r\n", "read lost"},
		{"EXPIRETIME k", redlock.Outcome{Verdict: redlock.Won, Number: -1}, "EXPIRETIME 0 k", ":-1\r\n", "read won"},
		{"PEXPIRETIME k", redlock.Outcome{Err: "ERR unknown command"}, "PEXPIRETIME 0 k", "-ERR unknown command\r\n", "read error"},

		{"GET k", fakeLockerValue(redlock.Won, "v"), "get 0 k", "$1\r\nv\r\n", "read won"},
		{"GET k", fakeLockerLost, "get 0 k", "$-1\r\n", "read lost"},
		{"GET k", fakeLockerRefused, "get 0 k", wrongType, "read error"},
		{"GETDEL k", fakeLockerValue(redlock.Won, "v"), "release 0 k get", "$1\r\nv\r\n", "release won"},
		{"GETDEL k", fakeLockerLost, "release 0 k get", "$-1\r\n", "release lost"},
		{"DEL k", fakeLockerWon, "release 0 k", ":1\r\n", "release won"},
		{"UNLINK k", fakeLockerLost, "release 0 k", ":0\r\n", "release lost"},
		{"DELEX k", fakeLockerWon, "release 0 k", ":1\r\n", "release won"},
		{"DELEX k IFEQ v", fakeLockerReply(":1\r\n"), "run 0 [DELEX k IFEQ v] on [k]", ":1\r\n", "run won"},

		{"HGET k f", fakeLockerReply("$1\r\n1\r\n"), "run 0 [HGET k f] on [k] readonly", "$1\r\n1\r\n", "run won"},
		{"ZADD k 1 a", fakeLockerNoQuorum, "run 0 [ZADD k 1 a] on [k]", noQuorum, "run noquorum"},
		{"MSET k 1 l 2 k 3", fakeLockerReply("+OK\r\n"), "run 0 [MSET k 1 l 2 k 3] on [k l]", "+OK\r\n", "run won"},
		{"OBJECT ENCODING k", fakeLockerReply("$3\r\nraw\r\n"), "run 0 [OBJECT ENCODING k] on [k] readonly", "$3\r\nraw\r\n", "run won"},
		{"OBJECT NONSENSE k", fakeLockerWon, "", "-ERR unknown subcommand 'NONSENSE'. Try OBJECT HELP.\r\n", "run error"},
		{"object encoding", fakeLockerWon, "", "-ERR wrong number of arguments for 'object|encoding' command\r\n", "run error"},
		{"NONSENSE k", fakeLockerWon, "", "-ERR unknown command 'NONSENSE', with args beginning with: 'k' \r\n", "run error"},
		{"FCALL f 1 k", fakeLockerWon, "", "-ERR FCALL on lock keys is not supported by this proxy\r\n", "run error"},
		{"MIGRATE host 1 k 0 5", fakeLockerWon, "", "-ERR MIGRATE on lock keys is not supported by this proxy\r\n", "run error"},
	}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			p := newFakeLockerPlane(fakeLockerAnswers(row.outcome))
			if reply := p.ask(t, row.Command); reply != row.reply {
				t.Errorf("%s: reply %q, want %q", row.Command, reply, row.reply)
			}
			if asked := strings.Join(p.locker.requests(), "; "); asked != row.asked {
				t.Errorf("%s: asked %q, want %q", row.Command, asked, row.asked)
			}
			if !slices.Equal(p.meter.commands, []string{row.counted}) {
				t.Errorf("%s: counted %q, want %q", row.Command, p.meter.commands, row.counted)
			}
		})
	}
}

// TestNullOfProtocol: a RESP3 client reads another null, and an examined run uses the
// protocol of its client.
func TestNullOfProtocol(t *testing.T) {
	p := newFakeLockerPlane(func(request any) redlock.Outcome {
		if _, run := request.(redlock.RunRequest); run {
			return fakeLockerReply("#t\r\n")
		}
		return fakeLockerLost
	})
	for command, want := range map[string]string{
		"SET k v NX": "_\r\n",
		"GET k":      "_\r\n",
		"MGET k l":   "*2\r\n_\r\n_\r\n",
		"SMEMBERS k": "#t\r\n",
	} {
		call := fakeLockerCall(command)
		call.Version = wire.RESP3
		if reply := string(p.Do(t.Context(), []byte("before "), call)); reply != "before "+want {
			t.Errorf("%s: %q, want %q appended", command, reply, want)
		}
	}
	if !slices.Contains(p.locker.requests(), "run 0 [SMEMBERS k] on [k] resp3 readonly") {
		t.Errorf("asked %q", p.locker.requests())
	}
}

func TestDatabaseIsPassedOn(t *testing.T) {
	p := newFakeLockerPlane(nil)
	commands := []string{"SET k v NX", "DEL k", "GET k", "EXISTS k", "TTL k", "PERSIST k", "GETSET k v", "HSET k f v",
		"MGET k", "GETDEL k", "EXPIRE k 5", "EVAL x 1 k", "SET k v NX PXAT 1", "SET k v PXAT 1"}
	for _, command := range commands {
		call := fakeLockerCall(command)
		call.DB = 3
		p.Do(t.Context(), nil, call)
	}
	asked := p.locker.requests()
	for _, request := range asked {
		if !strings.Contains(request, " 3 ") {
			t.Errorf("%q is not about database 3", request)
		}
	}
	if len(asked) != len(commands) {
		t.Errorf("%d requests for %d commands", len(asked), len(commands))
	}
}

func TestDefaultTTL(t *testing.T) {
	rules := []route.Rule{{Match: "short:*", DB: route.AnyDB, DefaultTTL: 30 * time.Second}, {Match: "*", DB: route.AnyDB}}
	for command, asked := range map[string]string{
		"SETNX short:a v":           "acquire 0 short:a v 30s",
		"SET short:a v NX":          "acquire 0 short:a v 30s",
		"SET short:a v NX KEEPTTL":  "acquire 0 short:a v 30s",
		"SET short:a v NX PX 5":     "acquire 0 short:a v 5ms",
		"GETSET short:a v":          "run 0 [SET short:a v GET PX 30000] on [short:a]",
		"SET short:a v XX GET":      "run 0 [SET short:a v GET PX 30000 XX] on [short:a]",
		"SET short:a v GET KEEPTTL": "run 0 [SET short:a v GET KEEPTTL] on [short:a]",
		"SETNX long v":              "acquire 0 long v 0s",
	} {
		p := newFakeLockerPlane(nil, rules...)
		p.ask(t, command)
		if got := p.locker.requests(); !slices.Equal(got, []string{asked}) {
			t.Errorf("%s: asked %q, want %q", command, got, asked)
		}
	}
}

// TestLocksWithoutTTL: the plane counts them all and warns once for each rule.
func TestLocksWithoutTTL(t *testing.T) {
	verdict := redlock.Lost
	p := newFakeLockerPlane(func(any) redlock.Outcome { return redlock.Outcome{Verdict: verdict} },
		route.Rule{Match: "a:*", DB: route.AnyDB}, route.Rule{Match: "b:*", DB: route.AnyDB}, route.Rule{Match: "c:*", DB: route.AnyDB, DefaultTTL: time.Second})
	p.ask(t, "SETNX a:1 secret")
	if p.TakenWithoutTTL() != 0 {
		t.Error("a lock that was not taken is counted")
	}
	verdict = redlock.Won
	for _, command := range []string{"SETNX a:1 secret", "SET a:2 secret NX", "GETSET b:1 secret", "SET b:1 secret NX GET",
		"SET a:3 secret NX PX 10", "SET a:3 secret GET KEEPTTL", "SETNX c:1 secret"} {
		p.ask(t, command)
	}
	if got := p.TakenWithoutTTL(); got != 4 {
		t.Errorf("%d locks without TTL counted, want 4", got)
	}
	for _, rule := range []string{"a:*", "b:*"} {
		if got := strings.Count(p.log.String(), "level=WARN msg=\"lock taken without a TTL"); got != 2 {
			t.Errorf("%d warnings, want one each for two rules:\n%s", got, p.log)
		}
		if !strings.Contains(p.log.String(), "match="+rule) {
			t.Errorf("no warning about %s:\n%s", rule, p.log)
		}
	}
}

// TestLogTellsNoValue: even debug logs show no argument but the command's name and its
// first key.
func TestLogTellsNoValue(t *testing.T) {
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, "secret-1")))
	for _, command := range []string{"SET k secret-2 NX", "EVAL secret-3 1 k secret-4", "GETSET k secret-5", "GET k", "HSET k secret-6 1",
		"SET k secret-7 secret-8", "NONSENSE secret-9", "OBJECT secret-10 k"} {
		p.ask(t, command)
	}
	everything := route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "*", DB: route.AnyDB}}}
	for _, line := range []string{"EVAL script 0 secret-12 k", "EVAL script x secret-13", "EVALSHA secret-14 -1 secret-15"} {
		call := fakeLockerCall(line)
		call.Route = everything.Route(0, call.Args)
		p.Do(t.Context(), nil, call)
	}
	p.Exec(t.Context(), nil, Transaction{DB: 3, Commands: []Command{fakeLockerCall("SET k secret-11")}})
	if log := p.log.String(); strings.Contains(log, "secret") {
		t.Errorf("a value is in the log:\n%s", log)
	} else if !strings.Contains(log, "command=getset db=0 key=k kind=swap verdict=won") || !strings.Contains(log, "command=exec db=3 key=k kind=run verdict=won") {
		t.Errorf("the log does not tell what was done:\n%s", log)
	}
}

type testClient struct{}

func (testClient) LogValue() slog.Value {
	return slog.GroupValue(slog.String("address", "10.0.0.7:5000"), slog.String("name", "billing"))
}

// TestLogTellsWhoAndWhich: at debug level an operator sees which client asked for which
// lock.
func TestLogTellsWhoAndWhich(t *testing.T) {
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, "x")))
	call := fakeLockerCall("EVAL s 2 lock:a token-1 token-2")
	call.Client = testClient{}
	p.Do(t.Context(), nil, call)
	transaction := fakeLockerCall("SET lock:b token-3")
	transaction.Client = testClient{}
	p.Exec(t.Context(), nil, Transaction{DB: 3, Commands: []Command{transaction}})
	for _, want := range []string{"command=eval db=0 key=lock:a kind=run", "command=exec db=3 key=lock:b kind=run", "client.address=10.0.0.7:5000 client.name=billing\n"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("no %q in\n%s", want, p.log.String())
		}
	}
	if strings.Contains(p.log.String(), "token") {
		t.Errorf("a value is in the log:\n%s", p.log.String())
	}
}

// TestUndecidedCommandsAreLogged: the plane logs them, but not each of them, and none of
// clients that have gone.
func TestUndecidedCommandsAreLogged(t *testing.T) {
	p := newFakeLockerPlane(fakeLockerAnswers(redlock.Outcome{Verdict: redlock.NoQuorum, Voting: 2, Answered: 2, Asked: 5, Needed: 3}))
	const line = "level=WARN msg=\"lock commands could not be decided (deploy/INCIDENTS.md#quorumlost)\" error=\"QUORUMLOST 2 of 5 lock masters can vote, 3 needed\" command="
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	p.Do(gone, nil, fakeLockerCall("GET k"))
	if log := p.log.String(); strings.Contains(log, line) {
		t.Errorf("a client that has gone is told of:\n%s", log)
	}
	synctest.Test(t, func(t *testing.T) { // in which no second passes
		for range 3 {
			p.ask(t, "SET k secret NX PX 100")
		}
	})
	if log := p.log.String(); strings.Count(log, line+"set ") != 1 || strings.Contains(log, "secret") {
		t.Errorf("want one line and no value:\n%s", log)
	}
}

// TestReservedKey: the plane refuses every command on it.
func TestReservedKey(t *testing.T) {
	p := newFakeLockerPlane(nil)
	for _, command := range []string{"GET k", "DEL k", "EVAL s 1 k", "HGETALL k"} {
		call := fakeLockerCall(command)
		call.Route.Reserved = true
		if reply := string(p.Do(t.Context(), nil, call)); reply != string(wire.ErrReservedKey) {
			t.Errorf("%s: %q", command, reply)
		}
	}
	if len(p.locker.asked) > 0 {
		t.Errorf("asked %q", p.locker.requests())
	}
}

func TestPanicComesBackToTheCaller(t *testing.T) {
	p := newFakeLockerPlane(func(any) redlock.Outcome { panic("defect") })
	defer func() {
		if got := fmt.Sprint(recover()); got != "defect" {
			t.Errorf("recovered %s", got)
		}
	}()
	p.ask(t, "DEL a b c")
}

// Nobody would wait for a lock that was taken while its key moved away. So its client
// is not told that it has the lock.
func TestLocksThatAreTakenWhileTheirKeyMoves(t *testing.T) {
	for _, row := range []struct {
		line    string
		outcome redlock.Outcome
		refused bool
	}{
		{"SET lock:a value NX PX 1000", redlock.Outcome{Verdict: redlock.Won}, true},
		{"SET lock:a value NX PX 1000", redlock.Outcome{Verdict: redlock.Lost}, false},
		{"SET kept:a value NX PX 1000", redlock.Outcome{Verdict: redlock.Won}, false},
		{"PEXPIRE lock:a 1000", redlock.Outcome{Verdict: redlock.Won}, true},
		{"GETSET lock:a value", redlock.Outcome{Verdict: redlock.Won}, true},
		{"DEL lock:a", redlock.Outcome{Verdict: redlock.Won}, false},
		{"EVAL script 1 lock:a", redlock.Outcome{Verdict: redlock.Won, Reply: []byte(":1\r\n"), Lives: time.Second}, true},
		{"LPOP lock:a", redlock.Outcome{Verdict: redlock.Won, Reply: []byte("$1\r\n1\r\n")}, false},
	} {
		var p fakeLockerPlane
		p = newFakeLockerPlane(func(any) redlock.Outcome {
			p.routes.Store(p.routes.Load().WithRules(route.Rules{{Match: "kept:*", DB: route.AnyDB}}, time.Now(), time.Hour, time.Minute).LeavingFor(time.Now().Add(time.Hour)))
			return row.outcome
		}, route.Rule{Match: "lock:*", DB: route.AnyDB}, route.Rule{Match: "kept:*", DB: route.AnyDB})
		if reply := p.ask(t, row.line); strings.HasPrefix(reply, "-TRYAGAIN ") != row.refused {
			t.Errorf("%s, %v: %q", row.line, row.outcome.Verdict, reply)
		}
	}
}

// Commands that come before the masters vote wait until the masters vote or the client
// goes.
func TestCommandsWaitForTheStart(t *testing.T) {
	for _, row := range []struct {
		over, gone, want time.Duration
	}{
		{time.Second, time.Minute, time.Second},
		{time.Minute, time.Second, time.Second},
		{0, time.Minute, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, starting := newFakeLockerPlane(nil), make(chan struct{})
			p.Starting = starting
			time.AfterFunc(row.over, func() { close(starting) })
			ctx, cancel := context.WithTimeout(t.Context(), row.gone)
			defer cancel()
			begun := time.Now()
			p.Do(ctx, nil, fakeLockerCall("GET k"))
			if took := time.Since(begun); took != row.want {
				t.Errorf("%+v: it waited for %v", row, took)
			}
			time.Sleep(time.Minute)
		})
	}
}
