package integration

import (
	"fmt"
	"testing"
	"time"
)

func TestTmpPaused(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	c.upstream.pause()
	for i, client := range handshakeClients {
		t.Run(client.name(), func(t *testing.T) {
			program := client.program(t)
			p := startTap(t, c.proxy.addr())
			begin := time.Now()
			lines, err := handshakeTrial{client: client, key: fmt.Sprint("p", i), port: p.port(), mode: "locks"}.start(t, program)
			t.Logf("RESULT %s: %.1fs, %d lines %v\n%s", client.name(), time.Since(begin).Seconds(), len(lines), err, p)
		})
	}
	c.upstream.resume()
}
