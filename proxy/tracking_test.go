package proxy

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/pubsub"
)

func invalidated(keys ...string) string {
	text := fmt.Sprintf(">2\r\n%s*%d\r\n", bulk("invalidate"), len(keys))
	for _, key := range keys {
		text += bulk(key)
	}
	return text
}

// trackingClient is a RESP3 client that tracks, of a proxy with or without an
// upstream.
func trackingClient(t *testing.T, redis *proxytest.Redis, options string) (*testClient, *fakeMasters, *testProxy) {
	t.Helper()
	masters := &fakeMasters{}
	p := startTestProxy(t, redis, masters.configure)
	client := p.dial(t)
	client.ask("HELLO 3\r\n", helloText(3))
	client.ask("CLIENT TRACKING ON "+options+"\r\n", "+OK\r\n")
	return client, masters, p
}

func TestTrackedKeysAreBounded(t *testing.T) {
	client, masters, _ := trackingClient(t, nil, "")
	const more = 20
	var commands, replies strings.Builder
	for i := range pubsub.MaxTrackedKeys + more {
		fmt.Fprintf(&commands, "GET lock:%d\r\n", i)
		replies.WriteString("_\r\n")
	}
	go func() { _, _ = client.Write([]byte(commands.String())) }()
	rest, evicted := "", 0
	for want := len(replies.String()); want > 0 || evicted < more; {
		rest += client.values(1)
		for {
			if after, ok := strings.CutPrefix(rest, "_\r\n"); ok {
				rest, want = after, want-3
				continue
			}
			head, after, ok := strings.Cut(rest, "\r\n*1\r\n$")
			if !ok || !strings.HasPrefix(head, ">2\r\n$10\r\ninvalidate") {
				break
			}
			lines := strings.SplitN(after, "\r\n", 3)
			if len(lines) < 3 {
				break
			}
			rest, evicted = lines[2], evicted+1
		}
	}
	if evicted != more {
		t.Errorf("%d keys were given up, want %d", evicted, more)
	}
	_ = client.Close()
	masters.expectNobody(t)
}

// Keys that are not remembered any more are not asked of the masters for ever.
func TestTrackedKeysAreGivenUp(t *testing.T) {
	client, masters, _ := trackingClient(t, nil, "")
	for i := range 200 {
		key := fmt.Sprintf("lock:%d", i)
		client.ask("GET "+key+"\r\n", "_\r\n")
		masters.change(key)
		client.expect(invalidated(key))
	}
	kept := 0
	masters.each(func(s *fakeSubscriber) {
		for _, wanted := range s.wants {
			if wanted {
				kept++
			}
		}
	})
	if kept > 100 {
		t.Errorf("the masters are still asked for %d keys", kept)
	}
}
