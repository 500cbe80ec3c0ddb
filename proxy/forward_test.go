package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// A recorder keeps what is sent to the upstream.
type recorder struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorder) configure(c *testConfig) {
	dial := c.DialUpstream
	c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		return recordedConn{conn, r}, err
	}
}

func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.sent.Reset()
	return r.sent.String()
}

type recordedConn struct {
	net.Conn
	to *recorder
}

func (c recordedConn) Write(p []byte) (int, error) {
	c.to.mu.Lock()
	c.to.sent.Write(p)
	c.to.mu.Unlock()
	return c.Conn.Write(p)
}

func respCommand(words ...string) string {
	return string(resp.AppendCommand(nil, asBytes(words)...))
}

// What Redis ignores between two commands is not sent on with them.
func TestForwardedBatchHoldsTheCommandsOnly(t *testing.T) {
	sent := &recorder{}
	client := startTestProxy(t, proxytest.StartRedis(t), sent.configure).dial(t)
	client.ask(respCommand("GET", "a"), "$-1\r\n")
	sent.take()
	set, get := respCommand("SET", "a", "1"), respCommand("GET", "a")
	for _, between := range []string{"", "\r\n", "\n\r\n   \r\n", "*0\r\n", "*-1\r\n\r\n"} {
		client.ask(between+set+between+get+between+get+between, "+OK\r\n$1\r\n1\r\n$1\r\n1\r\n")
		if got := sent.take(); got != set+get+get {
			t.Errorf("with %q between commands %q was sent", between, got)
		}
	}
}

// A reply to EXEC that is too long to be looked into does not leave the session
// in another database than its upstream.
func TestLongReplyToExecThatSelected(t *testing.T) {
	p := startTestProxy(t, proxytest.StartRedis(t), func(c *testConfig) { c.Limits.Bulk = 1 << 10 })
	client := p.dial(t)
	client.ask("SELECT 3\r\nSETRANGE long 9000 x\r\nSET here 3\r\nSELECT 0\r\nSET here 0\r\n", "+OK\r\n:9001\r\n+OK\r\n+OK\r\n+OK\r\n")
	for _, end := range []struct{ inside, want string }{
		{"SELECT 3\r\nGET long\r\n", "3"},
		{"SELECT 3\r\nGET long\r\nSELECT 99\r\n", "3"},
		{"SELECT 3\r\nGET long\r\nSELECT 0\r\n", "0"},
	} {
		client.ask("SELECT 0\r\n", "+OK\r\n")
		queued := strings.Repeat("+QUEUED\r\n", strings.Count(end.inside, "\r\n"))
		client.ask("MULTI\r\n"+end.inside+"EXEC\r\n", "+OK\r\n"+queued+string(wire.ErrUpstreamReply))
		client.ask("GET here\r\nGET lock:none\r\n", "$1\r\n"+end.want+"\r\n$-1\r\n")
		p.locks.mu.Lock()
		if db := p.locks.dbs[len(p.locks.dbs)-1]; db != int(end.want[0]-'0') {
			t.Errorf("after %q locks are those of database %d", end.inside, db)
		}
		p.locks.mu.Unlock()
	}
}

// A reply may nest as deep as Lua's stack allows.
func TestDeepReplyIsPassedOn(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client := startTestProxy(t, redis).dial(t)
	deep := respCommand("EVAL", "local a={}; local b={a}; a[1]=b; return a", "0")
	want := redis.Exchange(t, []byte(deep), nil, false)
	if bytes.Count(want, []byte("*1\r\n")) < 1000 {
		t.Fatalf("the reply is %d bytes long and not deep", len(want))
	}
	client.ask(deep, string(want))
	client.ask("PING\r\n", "+PONG\r\n")
}

// A command that would switch the connection to another protocol is refused wherever it
// comes, and the connection goes on.
func TestProtocolsThatAreNotForClients(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client := startTestProxy(t, redis).dial(t)
	refused := string(wire.ErrUnsupported("sync")) + string(wire.ErrUnsupported("psync")) + string(wire.ErrUnsupported("replconf")) + string(wire.ErrUnsupported("script|debug"))
	commands := "SYNC\r\nPSYNC ? -1\r\nREPLCONF ACK 1\r\nSCRIPT DEBUG yes\r\n"
	client.ask(commands+"SET a 1\r\n", refused+"+OK\r\n")
	client.ask("MULTI\r\nGET a\r\nSYNC\r\nEXEC\r\nGET a\r\n", "+OK\r\n+QUEUED\r\n"+string(wire.ErrUnsupported("sync"))+string(wire.ErrExecAbort)+"$1\r\n1\r\n")
	client.ask("MULTI\r\nSCRIPT DEBUG sync\r\nEXEC\r\nGET a\r\n", "+OK\r\n"+string(wire.ErrUnsupported("script|debug"))+string(wire.ErrExecAbort)+"$1\r\n1\r\n")
	client.ask("MONITOR\r\n", wire.OK)
	client.ask(commands, refused)
}

// A client whose commands were forwarded without a look at it is looked at again when anything has changed.
func TestPlainClientChanges(t *testing.T) {
	redis := proxytest.StartRedis(t)
	lockRule := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "none", DB: route.AnyDB}}}
	for _, row := range []struct {
		name   string
		change func(*config.Settings) // by a reload; may be nil
		text   string
		want   string
		ends   bool
	}{
		{name: "nothing", text: "GET none\r\n", want: "$-1\r\n"},
		{name: "a reply is not wanted", text: "CLIENT REPLY SKIP\r\nGET none\r\nGET none\r\nCLIENT REPLY OFF\r\nGET none\r\nCLIENT REPLY ON\r\n", want: "$-1\r\n" + wire.OK},
		{name: "MULTI", text: "MULTI\r\nGET none\r\nEXEC\r\n", want: wire.OK + wire.Queued + "*1\r\n$-1\r\n"},
		{name: "WATCH of a lock", text: "WATCH lock:a\r\nMULTI\r\nGET none\r\n", want: wire.OK + wire.OK + string(wire.ErrCrossLock)},
		{name: "another database", text: "SET k 0\r\nSELECT 3\r\nGET k\r\n", want: wire.OK + wire.OK + "$-1\r\n"},
		{name: "MONITOR", text: "MONITOR\r\nGET lock:a\r\n", want: wire.OK + string(wire.ErrMonitorKeyspace)},
		{name: "REDLOCK", text: "REDLOCK WHY none\r\n", want: string(wire.ErrUnsupported("redlock|why"))}, // as without a console
		{name: "the marker", text: "GET " + redlock.MarkerKey + "\r\n", want: string(wire.ErrReservedKey)},
		{name: "the key is a lock now", change: func(s *config.Settings) { s.Router = lockRule }, text: "SET none v NX\r\nGET none\r\n", want: wire.OK + bulk("v")},
		{name: "the user lost a right", change: func(s *config.Settings) { s.Users = config.NewAccounts(config.Auth{May: config.RightLocks}, 0) }, text: "GET none\r\n", want: string(wire.ErrNoPermKeys)},
		{name: "the user is gone", change: func(s *config.Settings) { s.Users = config.NewAccounts(testUsers, 0) }, text: "GET none\r\n", ends: true},
		{name: "there is no upstream", change: func(s *config.Settings) { s.DialUpstream = nil }, text: "GET none\r\n", want: string(wire.ErrNotALock([]byte("none")))},
	} {
		p := startTestProxy(t, redis, sharing)
		client := p.dial(t)
		client.ask("GET none\r\nGET none\r\n", "$-1\r\n$-1\r\n")
		if row.change != nil {
			p.change(row.change)
		}
		client.send(row.text)
		_ = client.SetReadDeadline(time.Now().Add(patience))
		if row.ends {
			client.expectEnd("")
			continue
		}
		got := make([]byte, len(row.want))
		if _, err := io.ReadFull(client, got); string(got) != row.want {
			t.Errorf("%s: got %q (%v), want %q", row.name, got, err, row.want)
		}
	}
}
