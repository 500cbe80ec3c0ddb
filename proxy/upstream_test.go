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
}
