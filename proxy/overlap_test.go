package proxy

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

// Lock commands on several keys overlap. Here are several hundred at once, some of which the client does not want to hear of.
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
