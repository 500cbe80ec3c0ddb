package proxy

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

// The record of clients takes memory that limits.memory bounds, and all of it is given
// back.
func TestWhatIsRememberedOfClientsCounts(t *testing.T) {
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure, func(c *testConfig) { c.Limits.Memory = 70_000 + session.LargeBuffer })
	used := func() int64 { return p.env.Budget.InUse() }
	long := strings.Repeat("n", 20_000)
	client := p.dial(t)
	client.ask("CLIENT SETNAME "+long+"\r\n", "+OK\r\n")
	client.ask("CLIENT SETINFO LIB-NAME "+long+"\r\n", "+OK\r\n")
	eventually(t, "two names are counted", func() bool { return used() == 40_000 })
	client.ask("CLIENT SETNAME short\r\n", "+OK\r\n")
	client.ask("CLIENT SETNAME "+long+"\r\n", "+OK\r\n")
	client.ask("HELLO 2 SETNAME short\r\n", helloText(2))
	eventually(t, "the last name is counted", func() bool { return used() == 20_000+int64(len("short")) })
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

// Clients that have not logged in hold no more memory than the limit allows, with whatever they
// have begun to send. Others, who have logged in, go on.
func TestHalfLoginsCountAsMemory(t *testing.T) {
	const most = 10
	p := startTestProxy(t, nil, func(c *testConfig) {
		c.Limits.Memory = most * session.LargeBuffer
		c.Users = config.NewAccounts(config.Auth{Password: proxytest.Password, May: config.RightBoth}, 0)
	})
	client := p.dial(t)
	client.ask("AUTH "+proxytest.Password+"\r\n", "+OK\r\n")
	half := "*2\r\n$4\r\nAUTH\r\n$16000\r\n" + strings.Repeat("x", 5000)
	var halves []*testClient
	for range 2 * most {
		c := p.dial(t)
		c.send(half)
		halves = append(halves, c)
	}
	p.wantReached(t, config.LimitMemory, most)
	eventually(t, "those who are refused give back what they sent", func() bool { return p.env.Budget.InUse() == most*session.LargeBuffer })
	client.ask("SET lock:a "+strings.Repeat("x", 5000)+"\r\n", "+OK\r\n")
	for _, c := range halves {
		_ = c.Close()
	}
	eventually(t, "all memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
}
