package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
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

// expectNothingBefore reads a key, has it changed, and expects that the client hears of this next. All that its
// listener had to say before has come then.
func (c *testClient) expectNothingBefore(masters *fakeMasters, key string) {
	c.t.Helper()
	c.ask("GET "+key+"\r\n", "_\r\n")
	masters.change(key)
	c.expect(invalidated(key))
}

func TestInvalidationsOfLockKeys(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for name, upstream := range map[string]*proxytest.Redis{"upstream": redis, "no upstream": nil} {
		t.Run(name, func(t *testing.T) {
			client, masters, _ := trackingClient(t, upstream, "OPTOUT")
			client.ask("GET lock:a\r\nSET lock:w 1\r\n", "_\r\n+OK\r\n")
			masters.change("lock:w")
			masters.change("lock:a")
			masters.change("lock:a") // a client is told once, until it reads the key again
			client.expect(invalidated("lock:a"))
			client.expectNothingBefore(masters, "lock:z")
			client.ask("GET lock:a\r\nMGET lock:b lock:c\r\nMULTI\r\nGET lock:d\r\nEXEC\r\n", "_\r\n*2\r\n_\r\n_\r\n+OK\r\n+QUEUED\r\n*1\r\n_\r\n")
			client.ask("EVAL x 1 lock:e\r\n", "-ERR the test has no such lock command\r\n")
			for _, key := range []string{"lock:a", "lock:c", "lock:d", "lock:e"} {
				masters.change(key)
				client.expect(invalidated(key))
			}
			masters.expectRequests(t, "+key lock:a", "-key lock:a", "+key lock:z", "-key lock:z", "+key lock:a", "+key lock:b lock:c", "+key lock:d", "+key lock:e",
				"-key lock:a", "-key lock:c", "-key lock:d", "-key lock:e")
			client.ask("CLIENT TRACKING OFF\r\n", "+OK\r\n")
			masters.expectNobody(t)
			client.ask("CLIENT TRACKING ON\r\nGET lock:f\r\n", "+OK\r\n_\r\n")
			client.ask("RESET\r\nGET lock:f\r\nPING\r\n", wire.Reset+"$-1\r\n+PONG\r\n")
			masters.expectNobody(t)
		})
	}
}

// A client takes an invalidation that comes before a reply for older than the
// reply, so it comes behind.
func TestInvalidationsComeBehindReplies(t *testing.T) {
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure)
	client := p.dial(t)
	client.ask("HELLO 3\r\nCLIENT TRACKING ON\r\nGET lock:other\r\n", helloText(3)+"+OK\r\n_\r\n")
	client.send("GET lock:slow\r\n")
	<-p.locks.entered
	masters.change("lock:slow")
	masters.change("lock:other")
	client.expect(invalidated("lock:other")) // which waits for no reply
	close(p.locks.released)
	client.expect(wire.OK + invalidated("lock:slow"))

	// The same where nobody can say which key was changed.
	client.ask("GET lock:a\r\n", "_\r\n")
	masters.change("")
	client.expect(invalidated("lock:a"))
	client.ask("GET lock:a\r\n", "_\r\n")
	masters.gap() // for one who tracks only, no reason to part
	client.expect(invalidated("lock:a"))
	client.ask("PING\r\n", "+PONG\r\n")
}

func TestTrackingModes(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for name, upstream := range map[string]*proxytest.Redis{"upstream": redis, "no upstream": nil} {
		t.Run(name, func(t *testing.T) {
			client, masters, _ := trackingClient(t, upstream, "OPTIN")
			client.ask("GET lock:a\r\nCLIENT CACHING YES\r\nGET lock:b\r\nGET lock:c\r\n", "_\r\n+OK\r\n_\r\n_\r\n")
			client.ask("CLIENT CACHING YES\r\nMULTI\r\nGET lock:d\r\nEXEC\r\nGET lock:e\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n_\r\n_\r\n")
			masters.expectRequests(t, "+key lock:b", "+key lock:d")

			client, masters, _ = trackingClient(t, upstream, "OPTOUT")
			client.ask("CLIENT CACHING NO\r\nGET lock:a\r\nGET lock:b\r\n", "+OK\r\n_\r\n_\r\n")
			masters.expectRequests(t, "+key lock:b")

			client, masters, _ = trackingClient(t, upstream, "BCAST PREFIX lock:a PREFIX other:")
			masters.change("lock:a1")
			masters.change("lock:b1")
			masters.change("other:1") // is no lock
			masters.change(redlock.MarkerKey)
			masters.change("lock:a1")
			client.expect(invalidated("lock:a1") + invalidated("lock:a1"))
			masters.change("")
			client.expect(">2\r\n" + bulk("invalidate") + "_\r\n")
			client.ask("CLIENT TRACKING OFF\r\nCLIENT TRACKING ON BCAST\r\n", "+OK\r\n+OK\r\n")
			masters.change("lock:b1")
			client.expect(invalidated("lock:b1"))
			masters.expectRequests(t, "+prefix lock:a", "+prefix other:", "-prefix lock:a", "-prefix other:", "+prefix ")
		})
	}
}

// RESP2 has no words for an invalidation; Redis sends none either.
func TestTrackingInRESP2(t *testing.T) {
	masters := &fakeMasters{}
	client := startTestProxy(t, nil, masters.configure).dial(t)
	client.ask("CLIENT TRACKING ON\r\nGET lock:a\r\n", "+OK\r\n$-1\r\n")
	client.ask("SUBSCRIBE lock:b\r\n", confirmed("*", "subscribe", "lock:b", 1))
	masters.change("lock:a")
	masters.publish("lock:b", "x")
	client.expect(told("*", "message", "lock:b", "x")) // and nothing before it
}

func TestNoLoop(t *testing.T) {
	client, masters, p := trackingClient(t, nil, "OPTOUT NOLOOP")
	const mine, other = "0123456789abcdef-mine", "0123456789abcdef-other"
	hold := func(value string) {
		p.locks.mu.Lock()
		defer p.locks.mu.Unlock()
		p.locks.values["lock:a"] = value
	}
	looks := func() int {
		return len(slices.DeleteFunc(p.locks.seen(), func(call string) bool { return call != "GET lock:a" }))
	}
	// others is a key that the client took and that somebody else has now. Looks are taken one after another, so
	// when the client is told of this one, those before are over.
	others := func(key string) {
		client.ask("GET "+key+"\r\nSET "+key+" "+mine+" NX\r\n", "_\r\n+OK\r\n")
		p.locks.mu.Lock()
		p.locks.values[key] = other
		p.locks.mu.Unlock()
		masters.change(key)
		client.expect(invalidated(key))
	}
	// A holder is not woken by what it did itself, whenever the masters tell.
	client.ask("GET lock:a\r\nSET lock:a "+mine+" NX\r\n", "_\r\n+OK\r\n")
	masters.change("lock:a")
	eventually(t, "the key is looked at", func() bool { return looks() == 2 })
	masters.change("lock:a")
	eventually(t, "the key is looked at again", func() bool { return looks() == 3 })
	others("lock:y")
	// Once somebody else has it, the client is told, and once only.
	hold(other)
	masters.change("lock:a")
	masters.change("lock:a")
	client.expect(invalidated("lock:a"))
	others("lock:z")
	// A waiter whose try was refused is told at once, without a look.
	client.ask("GET lock:a\r\nSET lock:a "+mine+" NX\r\n", bulk(other)+"_\r\n")
	before := looks()
	masters.change("lock:a")
	client.expect(invalidated("lock:a"))
	if looks() != before {
		t.Error("the key was looked at in vain")
	}
	// Values that many may use say nothing about who stored them.
	client.ask("DEL lock:a\r\nGET lock:a\r\nSET lock:a 1 NX\r\n", ":1\r\n_\r\n+OK\r\n")
	masters.change("lock:a")
	client.expect(invalidated("lock:a"))
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

// Answered here, CLIENT TRACKING and CLIENT CACHING read as on Redis.
func TestTrackingAnswersAsRedisDoes(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure)
	forwarding := startTestProxy(t, redis, masters.configure)
	for _, lines := range [][]string{
		{"CLIENT TRACKING", "CLIENT TRACKING MAYBE", "CLIENT TRACKING ON NOSUCH", "CLIENT TRACKING ON PREFIX", "CLIENT TRACKING OFF NOSUCH"},
		{"CLIENT CACHING", "CLIENT CACHING YES", "CLIENT CACHING MAYBE"},
		{"CLIENT TRACKING ON PREFIX a", "CLIENT TRACKING ON BCAST OPTIN", "CLIENT TRACKING ON OPTIN OPTOUT"},
		{"CLIENT TRACKING ON", "CLIENT CACHING YES", "CLIENT CACHING NO", "CLIENT CACHING MAYBE", "CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES", "CLIENT CACHING NO", "CLIENT TRACKING ON OPTOUT"},
		{"CLIENT TRACKING ON OPTOUT NOLOOP", "CLIENT CACHING NO", "CLIENT CACHING YES", "CLIENT TRACKING OFF", "CLIENT TRACKING ON OPTIN"},
		{"CLIENT TRACKING ON BCAST PREFIX ab PREFIX a", "CLIENT TRACKING ON BCAST PREFIX ab PREFIX c", "CLIENT TRACKING ON BCAST PREFIX abc", "CLIENT TRACKING ON BCAST PREFIX x", "CLIENT TRACKING ON BCAST PREFIX c", "CLIENT TRACKING ON BCAST", "CLIENT TRACKING ON"},
		{"CLIENT TRACKING OFF", "CLIENT TRACKING OFF BCAST"},
	} {
		here, there, through := p.dial(t), dialTest(t, "unix", redis.Socket), forwarding.dial(t)
		for _, line := range lines {
			there.send(line + "\r\n")
			want := there.values(1)
			for where, client := range map[string]*testClient{"answered here": here, "forwarded": through} {
				client.send(line + "\r\n")
				if got := client.values(1); got != want {
					t.Errorf("%q %s: %q, Redis says %q", line, where, got, want)
				}
			}
		}
	}
	p.dial(t).ask("CLIENT TRACKING ON REDIRECT 5\r\n", string(wire.ErrUpstreamNone))
}

// The upstream's own keys are tracked there, with the exceptions that CLIENT
// CACHING makes and lock commands between.
func TestTrackingAtTheUpstream(t *testing.T) {
	redis := proxytest.StartRedis(t)
	client, masters, _ := trackingClient(t, redis, "OPTOUT")
	client.ask("CLIENT CACHING NO\r\nGET a\r\nGET b\r\n", "+OK\r\n_\r\n_\r\n")
	client.ask("CLIENT CACHING NO\r\nGET lock:a\r\nGET c\r\n", "+OK\r\n_\r\n_\r\n")
	client.ask("CLIENT CACHING NO\r\nMULTI\r\nGET d\r\nEXEC\r\nGET e\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n_\r\n_\r\n")
	client.ask("CLIENT CACHING NO\r\nMGET f lock:f\r\nMGET g lock:g\r\n", "+OK\r\n*2\r\n_\r\n_\r\n*2\r\n_\r\n_\r\n")
	client.ask("GET last\r\n", "_\r\n")
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "last"} {
		redis.Ask(t, "SET "+key+" 1")
	}
	client.expect(invalidated("b") + invalidated("c") + invalidated("e") + invalidated("g") + invalidated("last"))
	masters.expectRequests(t, "+key lock:g")
}
