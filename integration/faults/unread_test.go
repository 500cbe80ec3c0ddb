package faults

import (
	"net"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// TestManyClientsThatDoNotRead: clients of shared connections ask for more than their buffers
// take, and read nothing. If the others waited a second for each of them in turn, they would lose
// patience. They hear their own replies, and stay.
func TestManyClientsThatDoNotRead(t *testing.T) {
	const clients, size = 200, 4 << 20
	c := rig.StartCluster(t, rig.Options{More: "upstream_connections: shared\n"})
	if err := c.Upstream.Direct.Set(t.Context(), "large", strings.Repeat("x", size), 0).Err(); err != nil {
		t.Fatal(err)
	}
	others := []rig.Conversation{c.Proxy.Talk(t, 2), c.Proxy.Talk(t, 2)} // one for each connection
	for _, other := range others {
		other.Ask("OK", "SET", "small", "value")
	}
	for range clients {
		w := rig.Dial(t, c.Proxy.Addr(), 2)
		if err := w.Conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if err := w.Send(rig.Encode("GET", "large")); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		for _, other := range others {
			other.Ask("value", "GET", "small")
		}
	}
	if ended := c.Proxy.Metric(t, `redlock_limit_reached_total{limit="unread_time"}`); ended == "0" {
		t.Error("no client was ended, so none delayed the others")
	}
}
