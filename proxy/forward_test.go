package proxy

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
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
