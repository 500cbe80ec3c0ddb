package proxy

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// bulk and line are shorthands for what is sent and expected.
func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func TestSessionWithoutUpstream(t *testing.T) {
	rows := []struct{ name, send, want string }{
		{"ping", "PING\r\n", "+PONG\r\n"},
		{"ping with a text, as an array", "*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n", "$2\r\nhi\r\n"},
		{"ping with too much", "PING a b\r\n", string(wire.ErrArity("ping"))},
		{"echo", "ECHO x\r\n", "$1\r\nx\r\n"},
		{"lock and release", "SET lock:a 1 NX PX 1000\r\nSET lock:a 2 NX PX 1000\r\nGET lock:a\r\nDEL lock:a\r\nGET lock:a\r\n", "+OK\r\n$-1\r\n$1\r\n1\r\n:1\r\n$-1\r\n"},
		{"not a lock", "GET a\r\nSET lock:a 1 NX\r\n", notALock("a") + "+OK\r\n"},
		{"a key and no value", "SET a secret\r\nEVAL x 1 a secret\r\nEVAL x 2 secret\r\nDBSIZE\r\n", notALock("a") + notALock("a") + strings.Repeat(string(wire.ErrUpstreamNone), 2)},
		{"a key of several lines", "*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n", notALock("a  ")},
		{"a long key", "GET " + strings.Repeat("a", 129) + "\r\n", notALock(strings.Repeat("a", 128))},
		{"both planes", "DEL lock:a a\r\n", notALock("a")},
		{"not a lock in a transaction", "MULTI\r\nSET a 1\r\nEXEC\r\n", "+OK\r\n" + notALock("a") + string(wire.ErrExecAbort)},
		{"never both planes", "RENAME a lock:a\r\n", string(wire.ErrCrossLock)},
		{"quit", "QUIT\r\nPING\r\n", "+OK\r\n"},
		{"select", "SELECT 15\r\nSELECT 16\r\nSELECT x\r\nSELECT\r\n", "+OK\r\n" + string(wire.ErrDatabaseIndex) + string(wire.ErrNotInteger) + string(wire.ErrArity("select"))},
		{"client name", "CLIENT GETNAME\r\nCLIENT SETNAME me\r\nCLIENT GETNAME\r\nCLIENT SETNAME \"a b\"\r\n", "$-1\r\n+OK\r\n$2\r\nme\r\n" + string(wire.ErrClientName)},
		{"client info", "CLIENT SETINFO LIB-NAME x\r\nCLIENT SETINFO lib-ver 1\r\nCLIENT NO-EVICT on\r\nCLIENT NO-TOUCH maybe\r\n", "+OK\r\n+OK\r\n+OK\r\n" + string(wire.ErrSyntax)},
		{"no password to give", "AUTH x\r\nAUTH default x\r\nAUTH bob x\r\nAUTH a b c\r\n", string(wire.ErrNoPassword) + "+OK\r\n" + string(wire.ErrWrongPass) + string(wire.ErrSyntax)},
		{"reply off", "CLIENT REPLY OFF\r\nPING\r\nSET lock:off 1 NX\r\nCLIENT REPLY ON\r\nGET lock:off\r\n", "+OK\r\n$1\r\n1\r\n"},
		{"reply skip", "CLIENT REPLY SKIP\r\nPING\r\nPING x\r\n", "$1\r\nx\r\n"},
		{"empty transaction", "MULTI\r\nEXEC\r\nEXEC\r\nDISCARD\r\n", "+OK\r\n*0\r\n" + string(wire.ErrExecNoMulti) + string(wire.ErrDiscardNoMulti)},
		{"transaction on locks", "MULTI\r\nPING\r\nSET lock:m 1 NX\r\nGET lock:m\r\nEXEC\r\nPING\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+PONG\r\n+OK\r\n$1\r\n1\r\n+PONG\r\n"},
		{"transaction on locks discarded", "MULTI\r\nSET lock:m 1 NX\r\nDISCARD\r\nGET lock:m\r\n", "+OK\r\n+QUEUED\r\n+OK\r\n$-1\r\n"},
		{"transaction on both", "MULTI\r\nSET lock:m 1 NX\r\nSET m 1\r\nSET lock:m 2\r\nEXEC\r\nGET lock:m\r\n", "+OK\r\n+QUEUED\r\n" + string(wire.ErrCrossLock) + "+QUEUED\r\n" + string(wire.ErrExecAbort) + "$-1\r\n"},
		{"transaction of both", "MULTI\r\nDEL lock:m m\r\nEXEC\r\n", "+OK\r\n" + string(wire.ErrCrossLock) + string(wire.ErrExecAbort)},
		{"transaction with an error", "MULTI\r\nSET lock:m\r\nGET lock:m\r\nEXEC\r\n", "+OK\r\n" + string(wire.ErrArity("set")) + "+QUEUED\r\n" + string(wire.ErrExecAbort)},
		{"not on masters", "MULTI\r\nGET lock:m\r\nDBSIZE\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n" + string(wire.ErrNotWithLockKeys("dbsize")) + string(wire.ErrExecAbort)},
		{"nor before", "MULTI\r\nSELECT 3\r\nGET lock:m\r\nEXEC\r\nGET lock:m\r\n", "+OK\r\n+QUEUED\r\n" + string(wire.ErrNotWithLockKeys("select")) + string(wire.ErrExecAbort) + "$-1\r\n"},
		{"reserved in a transaction", "MULTI\r\nGET " + redlock.MarkerKey + "\r\nEXEC\r\n", "+OK\r\n" + string(wire.ErrReservedKey) + string(wire.ErrExecAbort)},
		{"watched locks", "WATCH lock:a lock:b\r\nGET lock:a\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\nGET lock:a\r\n", "+OK\r\n$-1\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n1\r\n"},
		{"watched in vain", "WATCH lock:stale\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\nGET lock:a\r\nMULTI\r\nEXEC\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n$-1\r\n+OK\r\n*0\r\n"},
		{"watched and empty", "WATCH lock:stale\r\nMULTI\r\nEXEC\r\nMULTI\r\nEXEC\r\n", "+OK\r\n+OK\r\n*-1\r\n+OK\r\n*0\r\n"},
		{"unwatched", "WATCH lock:stale\r\nUNWATCH\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\n", "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"},
		{"unwatched by DISCARD", "WATCH lock:stale\r\nMULTI\r\nDISCARD\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"},
		{"watch without quorum", "WATCH lock:noquorum\r\nWATCH\r\nUNWATCH x\r\n", "-QUORUMLOST\r\n" + string(wire.ErrUpstreamNone) + string(wire.ErrArity("unwatch"))},
		{"watched in two databases", "WATCH lock:a\r\nSELECT 1\r\nWATCH lock:a\r\nMULTI\r\nGET lock:a\r\nEXEC\r\n", "+OK\r\n+OK\r\n" + string(wire.ErrWatchDatabase) + "+OK\r\n" + string(wire.ErrWatchDatabase) + string(wire.ErrExecAbort)},
		{"nested", "MULTI\r\nMULTI\r\nWATCH a\r\nDISCARD\r\n", "+OK\r\n" + string(wire.ErrNestedMulti) + string(wire.ErrWatchInMulti) + "+OK\r\n"},
		{"info has the loading field", "INFO redlock\r\n", bulk("# Redlock\r\n")},
		{"scripts", "SCRIPT EXISTS 0000000000000000000000000000000000000000\r\nSCRIPT FLUSH x\r\nSCRIPT FLUSH async\r\nSCRIPT KILL\r\n", "*1\r\n:0\r\n" + string(wire.ErrScriptFlush) + "+OK\r\n" + string(wire.ErrScriptKill)},
		{"reset", "HELLO 3 SETNAME x\r\nRESET\r\nGET lock:none\r\nCLIENT GETNAME\r\n", helloText(3) + "+RESET\r\n$-1\r\n$-1\r\n"},
		{"hello errors", "HELLO 4\r\nHELLO x\r\nHELLO 3 FOO\r\nHELLO 3 AUTH bob x\r\n", string(wire.ErrHelloProtocol) + string(wire.ErrHelloVersion) + string(wire.ErrHelloOption([]byte("FOO"))) + string(wire.ErrWrongPass)},
		{"null in RESP3", "HELLO 3\r\nGET lock:none\r\nCLIENT GETNAME\r\n", helloText(3) + "_\r\n_\r\n"},
		{"to another database", "COPY lock:a lock:b DB 3\r\nMOVE lock:a 3\r\nMULTI\r\nMOVE lock:a 3\r\nEXEC\r\n", string(wire.ErrElsewhere) + string(wire.ErrElsewhere) + "+OK\r\n" + string(wire.ErrElsewhere) + string(wire.ErrExecAbort)},
		{"reserved key", "GET " + redlock.MarkerKey + "\r\n", string(wire.ErrReservedKey)},
		{"wrong bytes", "PING\r\n*x\r\nPING\r\n", "+PONG\r\n" + string(wire.ErrCount)},
		{"ignored input", "\r\n*0\r\n*-1\r\nPING\r\n", "+PONG\r\n"},
		{"unknown", "NOSUCH a\r\n", string(wire.ErrUpstreamNone)},
		{"unknown on a lock", "NOSUCH lock:a\r\n", string(wire.ErrUnknownCommand(asBytes([]string{"NOSUCH", "lock:a"})))},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			client := startTestProxy(t, nil).dial(t)
			client.send(row.send)
			client.halfClose()
			client.expectEnd(row.want)
		})
	}
}

func notALock(key string) string {
	return "-NOUPSTREAM this proxy is for locks only (upstream: none), and no lock rule matches the key '" + key + "' (deploy/INCIDENTS.md#noupstream)\r\n"
}

// helloText is the reply to a first session's HELLO.
func helloText(protocol int) string {
	head := "*14\r\n"
	if protocol == 3 {
		head = "%7\r\n"
	}
	return head + bulk("server") + bulk("redis") + bulk("version") + bulk(handler.FallbackVersion) +
		bulk("proto") + fmt.Sprintf(":%d\r\n", protocol) + bulk("id") + ":1\r\n" +
		bulk("mode") + bulk("standalone") + bulk("role") + bulk("master") + bulk("modules") + "*0\r\n"
}

// WATCH on one plane does not guard a transaction on the other.
func TestWatchOnBothPlanes(t *testing.T) {
	client := startTestProxy(t, proxytest.StartRedis(t)).dial(t)
	client.ask("WATCH a\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\n", "+OK\r\n+OK\r\n"+string(wire.ErrCrossLock)+string(wire.ErrExecAbort))
	client.ask("WATCH lock:a\r\nMULTI\r\nSET a 1\r\nEXEC\r\n", "+OK\r\n+OK\r\n"+string(wire.ErrCrossLock)+string(wire.ErrExecAbort))
	client.ask("WATCH lock:a\r\nWATCH a\r\nMULTI\r\nEXEC\r\n", "+OK\r\n+OK\r\n+OK\r\n"+string(wire.ErrCrossLock))
	client.ask("WATCH a lock:a\r\n", string(wire.ErrCrossLock))
	client.ask("MULTI\r\nSET a 1\r\nSET lock:a 1\r\nGET a\r\nEXEC\r\nGET a\r\n", "+OK\r\n+QUEUED\r\n"+string(wire.ErrCrossLock)+"+QUEUED\r\n"+string(wire.ErrExecAbort)+"$-1\r\n")
	client.ask("WATCH a\r\nUNWATCH\r\nMULTI\r\nSET lock:a 1\r\nEXEC\r\nGET lock:a\r\n", "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n1\r\n")
}

func TestSessionCutAnywhere(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	program := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nv\r\nx*\r\nSET lock:k 1 NX\r\nGET k\r\nMULTI\r\nSET k 2\r\nEXEC\r\nGET lock:k\r\nDEL k lock:k\r\nMGET k lock:k\r\n"
	want := "+OK\r\n+OK\r\n" + bulk("v\r\nx*") + "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$1\r\n1\r\n:2\r\n*2\r\n$-1\r\n$-1\r\n"
	for cut := range len(program) {
		// A pipe takes a write only as it is read, so the cut is where it is.
		near, far := net.Pipe()
		p.clients.Welcome(far)
		client := &testClient{near, t}
		go func() {
			_, _ = near.Write([]byte(program[:cut]))
			_, _ = near.Write([]byte(program[cut:]))
		}()
		client.expect(want)
		_ = near.Close()
	}
}

func TestSessionAuthentication(t *testing.T) {
	p := startTestProxy(t, nil, func(c *testConfig) {
		c.Users = config.NewAccounts(config.Auth{Password: "secret", May: config.RightBoth}, 0)
	})
	client := p.dial(t)
	client.ask("PING\r\n", string(wire.ErrNoAuth))
	client.ask("SET lock:a 1 NX\r\n", string(wire.ErrNoAuth))
	client.ask("NOSUCH\r\n", string(wire.ErrUnknownCommand([][]byte{[]byte("NOSUCH")})))
	client.ask("HELLO 3\r\n", string(wire.ErrHelloNoAuth))
	client.ask("AUTH wrong\r\n", string(wire.ErrWrongPass))
	client.ask("AUTH bob secret\r\n", string(wire.ErrWrongPass))
	client.ask("HELLO 2 AUTH default wrong\r\n", string(wire.ErrWrongPass))
	client.ask("AUTH secret\r\n", "+OK\r\n")
	client.ask("SET lock:a 1 NX\r\n", "+OK\r\n")
	client.ask("RESET\r\n", "+RESET\r\n")
	client.ask("GET lock:a\r\n", string(wire.ErrNoAuth))
	client.ask("HELLO 2 AUTH default secret\r\n", helloText(2))
	client.ask("GET lock:a\r\n", "$1\r\n1\r\n")

	unknown := p.dial(t)
	unknown.send("*11\r\n")
	unknown.expectEnd(string(wire.ErrCountBeforeAuth))
	known := p.dial(t)
	known.ask("AUTH secret\r\n", "+OK\r\n")
	known.ask("*11\r\n$6\r\nEXISTS\r\n"+strings.Repeat("$6\r\nlock:x\r\n", 10), ":0\r\n")
}

// A rule for one database holds there and only there, also inside a pipeline
// and a transaction.
func TestRoutingFollowsSelect(t *testing.T) {
	redis := proxytest.StartRedis(t)
	routes := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: 3}}}
	p := startTestProxy(t, redis, func(c *testConfig) { c.Router = routes })
	for _, opened := range []string{"", "GET x\r\n"} {
		client := p.dial(t)
		if opened != "" {
			client.ask(opened, "$-1\r\n")
		}
		client.ask("SET lock:a up\r\nSELECT 3\r\nGET lock:a\r\nSELECT 99\r\nGET lock:a\r\nSELECT 0\r\nGET lock:a\r\n",
			"+OK\r\n+OK\r\n$-1\r\n"+string(wire.ErrDatabaseIndex)+"$-1\r\n+OK\r\n$2\r\nup\r\n")
		client.ask("MULTI\r\nGET lock:a\r\nSELECT 3\r\nGET lock:a\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n"+string(wire.ErrCrossLock)+string(wire.ErrExecAbort))
		client.ask("MULTI\r\nSELECT 3\r\nEXEC\r\nGET lock:a\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n$-1\r\n")
	}
	for _, call := range p.locks.seen() {
		if call != "GET lock:a" {
			t.Errorf("the lock plane was asked %q", call)
		}
	}
	if got := redis.Ask(t, "GET lock:a"); got != "$2\r\nup\r\n" {
		t.Errorf("the upstream has %q", got)
	}
}
