package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

func blockedClients(t *testing.T, redis *proxytest.Redis, n int) func() bool {
	return func() bool {
		return strings.Contains(redis.Ask(t, "INFO clients"), fmt.Sprintf("blocked_clients:%d\r\n", n))
	}
}

// A client that goes while it blocks must not take an element with it.
func TestUpstreamLearnsThatTheClientWent(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	for name, program := range map[string]string{
		"alone":                   "BLPOP q 0\r\n",
		"a lock command behind":   "BLPOP q 0\r\nSET lock:behind 1 NX\r\n",
		"SELECT behind":           "BLPOP q 0\r\nSELECT 1\r\n",
		"commands of both behind": "BLPOP q 0\r\nGET a\r\nGET lock:a\r\nGET a\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			client := p.dial(t)
			client.send(program)
			eventually(t, "the client blocks", blockedClients(t, redis, 1))
			_ = client.Close()
			eventually(t, "it no longer does", blockedClients(t, redis, 0))
			if got := redis.Ask(t, "RPUSH q x"); got != ":1\r\n" {
				t.Errorf("RPUSH answers %q", got)
			}
			if got := redis.Ask(t, "LPOP q"); got != "$1\r\nx\r\n" {
				t.Errorf("the element is %q", got)
			}
			eventually(t, "the session ended", func() bool { return p.sessionCount() == 0 })
		})
	}
}

// Commands that had come when a dial failed share its error. A later one dials anew, also if its
// client always sends ahead of the replies.
func TestDialErrorIsForgotten(t *testing.T) {
	for name, configure := range map[string]func(*testConfig){"own": func(*testConfig) {}, "shared": sharing} {
		t.Run(name, func(t *testing.T) {
			var up atomic.Bool
			p := upstreamThatReturns(t, &fakeMasters{}, &up, configure)
			client := p.dial(t)
			client.ask("GET a\r\nSET lock:slow x\r\nGET b\r\n", string(wire.ErrUpstreamDown))
			<-p.locks.entered
			up.Store(true)
			client.send("GET c\r\n")
			eventually(t, "it is read ahead", func() bool { return p.env.Budget.InUse() > 0 })
			close(p.locks.released)
			client.expect("+OK\r\n" + string(wire.ErrUpstreamDown) + "$-1\r\n")
		})
	}
}

func TestLockCommandWaitsForItsTurn(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.send("PING\r\nBLPOP q 0\r\nSET lock:a 1 NX\r\nGET lock:a\r\nGET k\r\n")
	client.expect("+PONG\r\n")
	eventually(t, "the client blocks", blockedClients(t, redis, 1))
	client.send("GET lock:a\r\n")
	eventually(t, "it is read ahead, so the session is about the first lock command", func() bool { return p.env.Budget.InUse() > 0 })
	if calls := p.locks.seen(); len(calls) > 0 {
		t.Fatalf("the lock plane was asked out of turn: %q", calls)
	}
	redis.Ask(t, "RPUSH q x")
	client.expect("*2\r\n$1\r\nq\r\n$1\r\nx\r\n+OK\r\n$1\r\n1\r\n$-1\r\n$1\r\n1\r\n")
}

func TestLockCommandEndsWithItsClient(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for _, opened := range []bool{false, true} {
		p := startTestProxy(t, redis)
		client := p.dial(t)
		if opened {
			client.ask("GET k\r\n", "$-1\r\n")
		}
		client.send("SET lock:a 1 NX\r\nSET lock:slow 1 NX\r\nGET k\r\n")
		<-p.locks.entered
		client.expect("+OK\r\n") // is not held back by the slow one
		_ = client.Close()
		select {
		case <-p.locks.left:
		case <-time.After(patience):
			t.Fatal("the lock command did not hear that its client has gone")
		}
	}
}

func TestSlowLockCommandHoldsUpWhatFollows(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.send("SET lock:slow 1 NX\r\n")
	<-p.locks.entered
	client.send("INCR k\r\n")
	client.send("GET k\r\nGET lock:none\r\n" + strings.Repeat("PING\r\n", 100_000))
	eventually(t, "all that may be is read ahead", func() bool { return p.env.Budget.InUse() > 500_000 })
	if n := redis.Settle(t); n != 1 {
		t.Errorf("the session has reached the upstream before the lock command's reply: %d connections", n)
	}
	close(p.locks.released)
	client.expect("+OK\r\n:1\r\n$1\r\n1\r\n$-1\r\n" + strings.Repeat("+PONG\r\n", 100_000))
}

func TestUpstreamDown(t *testing.T) {
	redis := proxytest.StartRedis(t)
	var up atomic.Bool
	var dials atomic.Int64
	p := startTestProxy(t, nil, func(c *testConfig) {
		c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			dials.Add(1)
			if !up.Load() {
				return nil, errors.New("refused")
			}
			return new(net.Dialer).DialContext(ctx, "unix", redis.Socket)
		}
	})
	client := p.dial(t)
	client.ask("PING\r\nGET a\r\nSET lock:a 1 NX\r\nGET a\r\nDEL a lock:a\r\n", "+PONG\r\n"+string(wire.ErrUpstreamDown)+"+OK\r\n"+string(wire.ErrUpstreamDown)+string(wire.ErrUpstreamDown))
	if n := dials.Load(); n < 1 || n > 5 {
		t.Errorf("dialled %d times", n)
	}
	client.ask("GET lock:a\r\n", "$1\r\n1\r\n")
	client.ask("SUBSCRIBE a b\r\n", string(wire.ErrUpstreamDown))
	client.ask("MULTI\r\nSET a 1\r\nEXEC\r\n", "+OK\r\n"+string(wire.ErrUpstreamDown)+string(wire.ErrExecAbort))
	client.ask("SCRIPT LOAD x\r\nSCRIPT EXISTS x\r\n", "+OK\r\n*1\r\n:0\r\n")
	client.send("INFO\r\n")
	if info := client.values(1); !strings.Contains(info, "loading:0\r\n") || !strings.HasSuffix(info, "# Redlock\r\n\r\n") {
		t.Errorf("INFO without upstream: %q", info)
	}
	up.Store(true)
	client.ask("GET a\r\n", "$-1\r\n")
}

// Many clients that connect while the upstream is down have one line a second, with their number.
func TestUpstreamDownFillsNoLog(t *testing.T) {
	log, dials := &proxytest.Log{}, 0
	p := startTestProxy(t, nil, func(c *testConfig) {
		c.log = slog.New(slog.NewTextHandler(log, nil))
		c.DialUpstream = func(context.Context) (net.Conn, error) { return nil, errors.New("refused") }
	})
	begun := time.Now()
	for told := 0; dials < 200 || told < dials; {
		if time.Since(begun) > patience {
			t.Fatalf("%d dials failed, and %d are told:\n%s", dials, told, log.String())
		}
		client := p.dial(t)
		client.ask("GET a\r\n", string(wire.ErrUpstreamDown))
		client.Close()
		dials, told = dials+1, 0
		for line := range strings.Lines(log.String()) {
			_, count, _ := strings.Cut(line, "failed_since_last_line=")
			n, _ := strconv.Atoi(strings.TrimSpace(count))
			told += n
		}
	}
	lines := strings.Count(log.String(), `msg="upstream dial failed (deploy/INCIDENTS.md#noupstream)" error=refused`)
	if most := 1 + int(time.Since(begun)/time.Second); lines < 2 || lines > most {
		t.Errorf("%d lines, and %d seconds", lines, most)
	}
}

func TestUpstreamLogin(t *testing.T) {
	redis := proxytest.StartRedis(t, "--requirepass", proxytest.Password)
	p := startTestProxy(t, redis, func(c *testConfig) {
		c.Upstream = config.UpstreamLogin{Password: proxytest.Password, DB: 2}
	})
	client := p.dial(t)
	client.ask("SET here 1\r\n", "+OK\r\n")
	redis.Ask(t, "SELECT 2")
	if got := redis.Ask(t, "GET here"); got != "$1\r\n1\r\n" {
		t.Errorf("in the URL's database: %q", got)
	}
	client = p.dial(t)
	client.send("HELLO 3 SETNAME me\r\nSELECT 5\r\nCLIENT NO-EVICT on\r\nCLIENT SETINFO LIB-NAME x\r\nGET none\r\n")
	eventually(t, "the upstream knows the client", func() bool {
		list := redis.Ask(t, "CLIENT LIST")
		return strings.Contains(list, "name=me ") && strings.Contains(list, " db=5 ") && strings.Contains(list, " resp=3")
	})
	wrong := startTestProxy(t, redis, func(c *testConfig) { c.Upstream = config.UpstreamLogin{User: "default", Password: "wrong"} }).dial(t)
	wrong.ask("GET a\r\nSET lock:a 1 NX\r\n", string(wire.ErrUpstreamRefused)+"+OK\r\n")
}

// scriptedUpstream lets each connection in with a greeting, answers the bytes
// that come then with a text, and closes it.
func scriptedUpstream(t *testing.T, greeting, answer string) func(*testConfig) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, greeting)
			if answer != "" {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	return func(c *testConfig) {
		c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		}
	}
}

func TestUpstreamConnectionEnds(t *testing.T) {
	for name, row := range map[string]struct{ answer, want string }{
		"nothing":        {"", ""},
		"whole":          {"$1\r\nx\r\n", "$1\r\nx\r\n"},
		"part of one":    {"$100\r\nabc", "$100\r\nabc"},
		"more than owed": {"$1\r\nx\r\n+what\r\n", "$1\r\nx\r\n"},
		"no RESP":        {"HTTP/1.1 400 Bad Request\r\n\r\n", string(wire.ErrUpstreamReply)},
	} {
		t.Run(name, func(t *testing.T) {
			client := startTestProxy(t, nil, scriptedUpstream(t, wire.Pong, row.answer)).dial(t)
			client.send("GET a\r\n")
			client.expectEnd(row.want)
		})
	}
}

// If an upstream refuses the connection, the command that opens it gets the refusal as its
// answer. Locks do not need the upstream.
func TestUpstreamLetsNobodyIn(t *testing.T) {
	const full = "-ERR max number of clients reached\r\n"
	for name, row := range map[string]struct{ greeting, want string }{
		"it is full": {full, full},
		"it closes":  {"", string(wire.ErrUpstreamDown)},
	} {
		t.Run(name, func(t *testing.T) {
			client := startTestProxy(t, nil, scriptedUpstream(t, row.greeting, "")).dial(t)
			client.ask("GET a\r\nSET lock:a 1 NX\r\nGET b\r\n", row.want+"+OK\r\n"+row.want)
		})
	}
}

// An upstream that answers PING with an error answers, and says itself what it
// thinks of a command.
func TestUpstreamIsOpenWhileItLoads(t *testing.T) {
	const loading = "-LOADING Redis is loading the dataset in memory\r\n"
	client := startTestProxy(t, nil, scriptedUpstream(t, loading, loading)).dial(t)
	client.send("GET a\r\n")
	client.expectEnd(loading)
}

// A lock command behind one that the upstream never answered is not run: its
// turn never came.
func TestUpstreamConnectionEndsBeforeALockCommand(t *testing.T) {
	p := startTestProxy(t, nil, scriptedUpstream(t, wire.Pong, "+OK\r\n"))
	client := p.dial(t)
	client.send("GET a\r\nGET b\r\nSET lock:a 1 NX\r\n")
	client.expectEnd("+OK\r\n")
	if calls := p.locks.seen(); len(calls) > 0 {
		t.Errorf("the lock plane was asked: %q", calls)
	}
}

func TestHalfClose(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.send("SET a 1\r\nGET lock:a\r\nGET a\r\n")
	client.halfClose()
	client.expectEnd("+OK\r\n$-1\r\n$1\r\n1\r\n")
	eventually(t, "no connection is left", func() bool { return redis.Settle(t) == 1 })
}

// A client that only half-closes is answered to the end, on both planes, as
// long as nothing blocks.
func TestHalfCloseWhileBusy(t *testing.T) {
	redis := proxytest.StartRedis(t, "--enable-debug-command", "local")
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.send("SET a 1\r\nDEBUG SLEEP 0.03\r\nGET lock:a\r\nGET a\r\nDEBUG SLEEP 0.03\r\nGET lock:a\r\n")
	client.halfClose()
	client.expectEnd("+OK\r\n+OK\r\n$-1\r\n$1\r\n1\r\n+OK\r\n$-1\r\n")
}

// Neither side waits for the other: a client may send everything before it
// reads anything.
func TestFullDuplex(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client := p.dial(t)
	value := strings.Repeat("v", 1000)
	client.ask("SET k "+value+"\r\n", "+OK\r\n")
	const commands = 20_000
	for range commands / 1000 {
		client.send(strings.Repeat("GET k\r\n", 1000))
	}
	client.send("GET lock:none\r\n")
	client.expect(strings.Repeat(bulk(value), commands) + "$-1\r\n")
	large := strings.Repeat("0123456789", 1_000_000)
	client.send("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n" + bulk(large) + "GET big\r\nGET lock:none\r\nGET big\r\n")
	client.expect("+OK\r\n" + bulk(large) + "$-1\r\n" + bulk(large))
}

// Replies of both planes and pushes that come at any time share the client's
// socket; none may stand inside another.
func TestPushesStandBetweenReplies(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.send("HELLO 3\r\nSUBSCRIBE c\r\n")
	client.values(2)
	const messages, size = 300, 50_000
	message := strings.Repeat("m", size)
	go func() {
		for range messages {
			redis.Ask(t, "PUBLISH c "+message)
		}
	}()
	go func() {
		for range messages {
			client.send("GET lock:none\r\nECHO x\r\n")
		}
	}()
	pushes, nulls, echoes := 0, 0, 0
	rest := client.values(3 * messages)
	push := ">3\r\n" + bulk("message") + bulk("c") + bulk(message)
	for len(rest) > 0 {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, push); ok {
			pushes++
		} else if rest, ok = strings.CutPrefix(rest, "_\r\n"); ok {
			nulls++
		} else if rest, ok = strings.CutPrefix(rest, "$1\r\nx\r\n"); ok {
			echoes++
		} else {
			t.Fatalf("out of step at %.100q", rest)
		}
	}
	if pushes != messages || nulls != messages || echoes != messages {
		t.Errorf("%d pushes, %d lock replies, %d upstream replies, want %d of each", pushes, nulls, echoes, messages)
	}
}

func TestSplitCommands(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client := startTestProxy(t, redis).dial(t)
	client.ask("SET a 1\r\nSET lock:a 2\r\nSADD s x\r\n", "+OK\r\n+OK\r\n:1\r\n")
	client.ask("MGET a lock:a none lock:none lock:a s\r\n", "*6\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n$-1\r\n$1\r\n2\r\n$-1\r\n")
	client.ask("EXISTS a lock:a a lock:none\r\n", ":3\r\n")
	client.ask("TOUCH a lock:a\r\n", ":2\r\n")
	client.ask("RENAME a lock:a\r\n", string(wire.ErrCrossLock))
	client.ask("CLIENT REPLY SKIP\r\nUNLINK lock:a\r\nDEL a lock:a\r\n", ":1\r\n")
	client.ask("HELLO 3\r\nMGET a lock:a\r\n", strings.Replace(helloText(3), handler.FallbackVersion, "7.0.15", 1)+"*2\r\n_\r\n_\r\n")
}
