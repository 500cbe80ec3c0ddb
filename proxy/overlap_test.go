package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// A command does not wait for earlier ones on other keys. It waits for one on its own key, and those of
// the upstream wait for it. All replies come in order.
func TestLockCommandsOverlap(t *testing.T) {
	p := startTestProxy(t, proxytest.StartRedis(t))
	client := p.dial(t)
	client.send("SET lock:beside:slow 1 NX\r\nSET lock:beside:2 1 NX\r\nSET lock:beside:slow 1 NX\r\nSET a 1\r\nSET lock:beside:3 1 NX\r\n")
	<-p.locks.entered
	eventually(t, "the second is asked", func() bool { return len(p.locks.seen()) == 2 })
	close(p.locks.released)
	client.expect("+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n")
	want := []string{"SET lock:beside:slow 1 NX", "SET lock:beside:2 1 NX", "SET lock:beside:slow 1 NX", "SET lock:beside:3 1 NX"}
	if got := p.locks.seen(); !slices.Equal(got, want) {
		t.Errorf("the masters were asked %q", got)
	}
}

// Several hundred at once, some of which the client does not want to hear of.
func TestManyLockCommandsOverlap(t *testing.T) {
	p := startTestProxy(t, proxytest.StartRedis(t))
	client := p.dial(t)
	var pipeline, want strings.Builder
	for i := range 500 {
		reply := "+OK\r\n"
		if i%3 == 0 {
			client.ask(fmt.Sprintf("SET lock:beside:%d 1 NX\r\n", i), "+OK\r\n")
			reply = "$-1\r\n"
		}
		if i%7 == 0 {
			pipeline.WriteString("CLIENT REPLY SKIP\r\n")
			reply = ""
		}
		fmt.Fprintf(&pipeline, "SET lock:beside:%d 1 NX\r\n", i)
		want.WriteString(reply)
	}
	client.ask(pipeline.String(), want.String())
	client.ask("PING\r\n", "+PONG\r\n")
}

// A client that leaves cancels all of them. The session ends after they have.
func TestAClientLeavesWhileLockCommandsOverlap(t *testing.T) {
	p := startTestProxy(t, proxytest.StartRedis(t))
	client := p.dial(t)
	client.send("SET lock:beside:slow 1 NX\r\nSET lock:beside:2 1 NX\r\n")
	<-p.locks.entered
	_ = client.Close()
	<-p.locks.left
}

// A defect in one of them ends the session, and no other.
func TestADefectInALockCommandThatOverlaps(t *testing.T) {
	p := startTestProxy(t, proxytest.StartRedis(t))
	client, other := p.dial(t), p.dial(t)
	client.send("SET lock:beside:1 1 NX\r\nSET lock:beside:panic 1 NX\r\nSET lock:beside:2 1 NX\r\n")
	client.expectEnd("")
	other.ask("SET lock:beside:3 1 NX\r\n", "+OK\r\n")
}
