package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

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
