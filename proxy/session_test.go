package proxy

import (
	"fmt"
	"net"
	"testing"

	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/proxytest"
)

// bulk and line are shorthands for what is sent and expected.
func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

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
