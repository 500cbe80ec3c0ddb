package proxy

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
)

// The record of clients takes memory that limits.memory bounds, and all of it is given
// back.
func TestWhatIsRememberedOfClientsCounts(t *testing.T) {
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure, func(c *testConfig) { c.Limits.Memory = 70_000 })
	used := func() int64 { return p.env.Budget.InUse() }
	long := strings.Repeat("n", 20_000)
	client := p.dial(t)
	client.ask("CLIENT SETNAME "+long+"\r\n", "+OK\r\n")
	client.ask("CLIENT SETINFO LIB-NAME "+long+"\r\n", "+OK\r\n")
	if n := used(); n != 40_000 {
		t.Errorf("%d bytes are counted", n)
	}
	client.ask("CLIENT SETNAME short\r\n", "+OK\r\n")
	client.ask("CLIENT SETNAME "+long+"\r\n", "+OK\r\n")
	client.ask("HELLO 2 SETNAME short\r\n", helloText(2))
	if n := used(); n != 20_000+int64(len("short")) {
		t.Errorf("%d bytes are counted", n)
	}
	other := p.dial(t)
	other.ask("CLIENT SETNAME "+long+"\r\n", "+OK\r\n")
	other.ask("CLIENT SETINFO LIB-NAME "+long+"\r\n", "+OK\r\n")
	other.ask("CLIENT SETINFO LIB-VER "+long+"\r\n", string(wire.ErrMemory))
	other.ask("RESET\r\n", "+RESET\r\n")
	_ = client.Close()
	_ = other.Close()
	eventually(t, "names are given back", func() bool { return used() == 0 })

	const keys = 100
	tracker := p.dial(t)
	tracker.ask("HELLO 3\r\nCLIENT TRACKING ON\r\n", strings.Replace(helloText(3), ":1\r\n", ":3\r\n", 1)+"+OK\r\n")
	for n := range keys {
		tracker.ask(fmt.Sprintf("GET lock:%d\r\n", n), "_\r\n")
	}
	if n := used(); n < keys*pubsub.NameOverhead {
		t.Errorf("%d bytes are counted for %d keys", n, keys)
	}
	tracker.ask("CLIENT TRACKING OFF\r\n", "+OK\r\n")
	eventually(t, "keys are given back", func() bool { return used() == 0 })

	// Who tracks more keys than there is memory for ends.
	tracker.ask("CLIENT TRACKING ON\r\n", "+OK\r\n")
	for n := range 1000 {
		_, _ = fmt.Fprintf(tracker, "GET lock:%d\r\n", n)
	}
	eventually(t, "the session ends", func() bool { return p.sessionCount() == 0 })
	eventually(t, "all memory is given back", func() bool { return used() == 0 })
}
