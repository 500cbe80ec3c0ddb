package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// confirmed and told are what Redis sends; of is the first byte.
func confirmed(of, word, name string, total int) string {
	return fmt.Sprintf("%s3\r\n%s%s:%d\r\n", of, bulk(word), bulk(name), total)
}

func told(of string, words ...string) string {
	text := fmt.Sprintf("%s%d\r\n", of, len(words))
	for _, word := range words {
		text += bulk(word)
	}
	return text
}

const unlockChannel = "redisson_lock__channel:{lock:a}"

func TestMessagesOfTheMastersReachSubscribers(t *testing.T) {
	redis := proxytest.StartRedis(t)
	for protocol, of := range map[string]string{"RESP2": "*", "RESP3": ">"} {
		t.Run(protocol, func(t *testing.T) {
			masters := &fakeMasters{}
			client := startTestProxy(t, redis, masters.configure).dial(t)
			if of == ">" {
				client.ask("HELLO 3\r\n", helloText(3))
			}
			client.ask("SUBSCRIBE "+unlockChannel+" news\r\n",
				confirmed(of, "subscribe", unlockChannel, 1)+confirmed(of, "subscribe", "news", 2))
			masters.publish(unlockChannel, "0")
			client.expect(told(of, "message", unlockChannel, "0"))
			client.ask("PSUBSCRIBE redisson_*\r\n", confirmed(of, "psubscribe", "redisson_*", 3))
			masters.publish(unlockChannel, "a\r\nb")
			client.expect(told(of, "message", unlockChannel, "a\r\nb") + told(of, "pmessage", "redisson_*", unlockChannel, "a\r\nb"))

			// A message that is published at the upstream comes once, from there.
			redis.Ask(t, "PUBLISH "+unlockChannel+" plain")
			got := client.values(2)
			if !strings.Contains(got, told(of, "message", unlockChannel, "plain")) || !strings.Contains(got, told(of, "pmessage", "redisson_*", unlockChannel, "plain")) {
				t.Errorf("from the upstream: %q", got)
			}
			client.ask("UNSUBSCRIBE "+unlockChannel+"\r\n", confirmed(of, "unsubscribe", unlockChannel, 2))
			masters.publish(unlockChannel, "late")
			client.expect(told(of, "pmessage", "redisson_*", unlockChannel, "late"))
			client.ask("PUNSUBSCRIBE\r\n", confirmed(of, "punsubscribe", "redisson_*", 1))
			masters.expectNobody(t)
			masters.expectRequests(t, "+channel "+unlockChannel, "+pattern redisson_*", "-channel "+unlockChannel, "-pattern redisson_*")
			client.ask("UNSUBSCRIBE\r\nPING\r\n", confirmed(of, "unsubscribe", "news", 0)+"+PONG\r\n")
		})
	}
}

// The masters are subscribed to before the client sees a confirmation, and
// what comes between is delivered behind it.
func TestConfirmationComesFirst(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	masters.asking = func(what string) {
		if strings.HasPrefix(what, "+channel") {
			masters.publish(unlockChannel, "early")
		}
	}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	for range 100 {
		client.send("SUBSCRIBE " + unlockChannel + "\r\n")
		client.expect(confirmed("*", "subscribe", unlockChannel, 1))
		masters.publish(unlockChannel, "x")
		// "early" may come or not: the client did not know yet.
		got, wanted := client.values(1), told("*", "message", unlockChannel, "x")
		if early := told("*", "message", unlockChannel, "early"); got == early || got == early+wanted {
			if got = got[len(early):]; got == "" {
				got = client.values(1)
			}
		}
		if got != wanted {
			t.Fatalf("got %q", got)
		}
		client.send("UNSUBSCRIBE " + unlockChannel + "\r\n")
		client.expect(confirmed("*", "unsubscribe", unlockChannel, 0))
		masters.publish(unlockChannel, "after")
		client.ask("PING\r\n", "+PONG\r\n")
	}
}

func TestOnlyChannelsThatMayCarryWakeUpsAreHeard(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	client.ask("SUBSCRIBE news\r\n", confirmed("*", "subscribe", "news", 1))
	client.ask("PSUBSCRIBE __keyevent@0__:*\r\n", confirmed("*", "psubscribe", "__keyevent@0__:*", 2))
	client.ask("SSUBSCRIBE lock:a\r\n", confirmed("*", "ssubscribe", "lock:a", 1))
	masters.expectRequests(t)
	client.ask("PSUBSCRIBE *\r\n", confirmed("*", "psubscribe", "*", 3))
	masters.publish("__keyspace@0__:lock:a", "del")
	masters.publish("anything", "x")
	client.expect(told("*", "pmessage", "*", "anything", "x"))
}

// A message is written between two values of other writers, never inside one.
func TestMessagesStandBetweenReplies(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	large := strings.Repeat("v", 200_000)
	client.ask("*3\r\n"+bulk("SET")+bulk("big")+bulk(large), "+OK\r\n")
	client.ask("HELLO 3\r\n", helloText(3))
	client.ask("SUBSCRIBE lock:a\r\n", confirmed(">", "subscribe", "lock:a", 1))
	const rounds = 100
	go func() {
		for i := range rounds {
			masters.publish("lock:a", fmt.Sprint(i))
		}
	}()
	go func() {
		for range rounds {
			client.send("GET big\r\nGET lock:none\r\n")
		}
	}()
	rest, messages := client.values(3*rounds), 0
	for len(rest) > 0 {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, told(">", "message", "lock:a", fmt.Sprint(messages))); ok {
			messages++
		} else if rest, ok = strings.CutPrefix(rest, bulk(large)); !ok {
			if rest, ok = strings.CutPrefix(rest, "_\r\n"); !ok {
				t.Fatalf("out of step at %.100q", rest)
			}
		}
	}
	if messages != rounds {
		t.Errorf("%d messages in order, want %d", messages, rounds)
	}
}

func TestResetAndReplyModes(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	client.ask("CLIENT REPLY OFF\r\nSUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	masters.publish("lock:a", "x")
	client.expect(told("*", "message", "lock:a", "x")) // as with Redis
	client.ask("RESET\r\n", wire.Reset)
	masters.expectNobody(t)
	client.ask("GET a\r\n", "$-1\r\n")
	client.ask("HELLO 3\r\nSUBSCRIBE lock:a\r\n", helloText(3)+confirmed(">", "subscribe", "lock:a", 1))
	client.ask("HELLO 2\r\n", helloText(2))
	masters.publish("lock:a", "x")
	client.expect(told("*", "message", "lock:a", "x"))
	client.ask("GET lock:a\r\n", string(wire.ErrRestricted("get")))
	_ = client.Close()
	masters.expectNobody(t)
}

// Where confirmations cannot be seen, subscribing to a lock's channel is an
// error rather than a promise that is not kept.
func TestLockChannelsInMultiAndPipe(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	client.ask("MULTI\r\nSUBSCRIBE lock:a\r\nEXEC\r\n", "+OK\r\n"+string(wire.ErrSubscribeInMulti)+string(wire.ErrExecAbort))
	client.ask("MULTI\r\nSET a 1\r\nSUBSCRIBE x lock:a\r\nEXEC\r\nGET a\r\n", "+OK\r\n+QUEUED\r\n"+string(wire.ErrSubscribeInMulti)+string(wire.ErrExecAbort)+"$-1\r\n")
	client.ask("MONITOR\r\n", wire.OK)
	client.ask("SUBSCRIBE lock:a\r\n", string(wire.ErrLockInPipe))
	masters.expectRequests(t)
}

// A subscription that the upstream refuses gets no messages from the masters either.
func TestRefusedSubscription(t *testing.T) {
	redis := proxytest.StartRedis(t)
	redis.Ask(t, "ACL SETUSER limited on nopass +@all ~* &lock:allowed")
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure, func(c *testConfig) {
		c.Upstream = config.UpstreamLogin{User: "limited", Password: "x"}
	}).dial(t)
	client.send("HELLO 3\r\nSUBSCRIBE lock:a lock:b\r\n")
	if got := client.values(2); !strings.Contains(got, "-NOPERM") {
		t.Fatalf("got %q", got)
	}
	masters.publish("lock:a", "x")
	client.ask("SUBSCRIBE lock:allowed\r\n", confirmed(">", "subscribe", "lock:allowed", 1))
	masters.publish("lock:b", "x")
	masters.publish("lock:allowed", "x")
	client.expect(told(">", "message", "lock:allowed", "x")) // and nothing before it
}

func TestSubscriberThatDoesNotRead(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	p := startTestProxy(t, redis, masters.configure)
	client := p.dial(t)
	client.ask("SUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	payload := strings.Repeat("x", 1<<20)
	for range 200 {
		masters.publish("lock:a", payload)
	}
	eventually(t, "the session has ended", func() bool { return p.sessionCount() == 0 })
	masters.expectNobody(t)
	eventually(t, "the memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
}

func TestGapEndsSubscribers(t *testing.T) {
	redis := proxytest.StartRedis(t)
	masters := &fakeMasters{}
	client := startTestProxy(t, redis, masters.configure).dial(t)
	client.ask("SUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	masters.publish("lock:a", "x")
	masters.gap()
	client.expectEnd(told("*", "message", "lock:a", "x"))
}

// A subscriber may be silent for as long as it likes, as with Redis.
func TestSubscribersAreNeverIdle(t *testing.T) {
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure)
	client, idle := p.dial(t), p.dial(t)
	client.ask("SUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	p.change(func(s *config.Settings) { s.Limits.Idle = 40 * time.Millisecond })
	idle.expectEnd("")
	masters.publish("lock:a", "x")
	client.expect(told("*", "message", "lock:a", "x"))
}

func TestSubscribeWithoutUpstream(t *testing.T) {
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure)
	client := p.dial(t)
	client.ask("UNSUBSCRIBE\r\nPUNSUBSCRIBE x\r\n", "*3\r\n"+bulk("unsubscribe")+"$-1\r\n:0\r\n"+confirmed("*", "punsubscribe", "x", 0))
	client.ask("SUBSCRIBE lock:a news\r\n", string(wire.ErrUpstreamNone))
	client.ask("PSUBSCRIBE news*\r\n", string(wire.ErrUpstreamNone))
	masters.expectRequests(t)
	client.ask("SUBSCRIBE lock:a lock:b lock:a\r\n",
		confirmed("*", "subscribe", "lock:a", 1)+confirmed("*", "subscribe", "lock:b", 2)+confirmed("*", "subscribe", "lock:a", 2))
	masters.publish("lock:a", "x")
	client.expect(told("*", "message", "lock:a", "x"))
	client.ask("PSUBSCRIBE redisson_lock__channel:{lock:*}\r\n", confirmed("*", "psubscribe", "redisson_lock__channel:{lock:*}", 3))
	masters.publish(unlockChannel, "0")
	client.expect(told("*", "pmessage", "redisson_lock__channel:{lock:*}", unlockChannel, "0"))
	client.ask("PING\r\nPING hi\r\nPING a b\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"+told("*", "pong", "hi")+string(wire.ErrArity("ping")))
	client.ask("GET lock:a\r\nGET a\r\nHELLO 3\r\nPUBLISH a b\r\nNOSUCH\r\n", string(wire.ErrRestricted("get"))+string(wire.ErrRestricted("get"))+
		string(wire.ErrRestricted("hello"))+string(wire.ErrRestricted("publish"))+string(wire.ErrUnknownCommand([][]byte{[]byte("NOSUCH")})))
	client.ask("UNSUBSCRIBE lock:b\r\n", confirmed("*", "unsubscribe", "lock:b", 2))
	client.ask("UNSUBSCRIBE\r\n", confirmed("*", "unsubscribe", "lock:a", 1))
	client.ask("PUNSUBSCRIBE\r\n", confirmed("*", "punsubscribe", "redisson_lock__channel:{lock:*}", 0))
	masters.expectNobody(t)
	client.ask("PING\r\nGET lock:a\r\n", "+PONG\r\n$-1\r\n")
	client.ask("HELLO 3\r\nSUBSCRIBE lock:a\r\n", helloText(3)+confirmed(">", "subscribe", "lock:a", 1))
	client.ask("GET lock:a\r\n", "_\r\n")
	client.ask("UNSUBSCRIBE x\r\n", confirmed(">", "unsubscribe", "x", 1))
	client.ask("UNSUBSCRIBE\r\nUNSUBSCRIBE\r\n", confirmed(">", "unsubscribe", "lock:a", 0)+">3\r\n"+bulk("unsubscribe")+"_\r\n:0\r\n")
	client.ask("SUBSCRIBE lock:a\r\nRESET\r\n", confirmed(">", "subscribe", "lock:a", 1)+wire.Reset)
	masters.expectNobody(t)
}

// upstreamThatReturns makes a proxy whose upstream is away until up is set.
func upstreamThatReturns(t *testing.T, masters *fakeMasters, up *atomic.Bool, configure ...func(*testConfig)) *testProxy {
	redis := proxytest.StartRedis(t)
	returns := func(c *testConfig) {
		c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			if !up.Load() {
				return nil, errors.New("refused")
			}
			return new(net.Dialer).DialContext(ctx, "unix", redis.Socket)
		}
	}
	return startTestProxy(t, nil, append(configure, masters.configure, returns)...)
}

// A session that subscribed without an upstream ends when it has reached one:
// nobody there knows what it wants to hear.
func TestSubscriberEndsWhenItReachesTheUpstream(t *testing.T) {
	for _, row := range []struct{ of, hello, Command, reply string }{
		{"*", "PING\r\n", "SUBSCRIBE news\r\n", confirmed("*", "subscribe", "news", 1)},
		{">", "HELLO 3\r\n", "SUBSCRIBE news\r\nSET a 1\r\n", confirmed(">", "subscribe", "news", 1) + "+OK\r\n"},
		{">", "HELLO 3\r\n", "SET a 1\r\nGET a\r\n", "+OK\r\n$1\r\n1\r\n"},
	} {
		var up atomic.Bool
		masters := &fakeMasters{}
		client := upstreamThatReturns(t, masters, &up).dial(t)
		client.send(row.hello)
		client.values(1)
		client.ask("SUBSCRIBE lock:a lock:b\r\n", confirmed(row.of, "subscribe", "lock:a", 1)+confirmed(row.of, "subscribe", "lock:b", 2))
		client.ask("PSUBSCRIBE lock:*\r\n", confirmed(row.of, "psubscribe", "lock:*", 3))
		client.ask("SUBSCRIBE news\r\n", string(wire.ErrUpstreamDown))
		up.Store(true)
		client.send(row.Command)
		client.expectEnd(row.reply)
		masters.expectNobody(t)
	}
}

// One that only waits ends soon after anybody has found the upstream back: a client with a
// connection of its own or a shared one, or the proxy itself. One that has unsubscribed, and
// one that only tracks keys, stay.
func TestSilentSubscribersEndWhenTheUpstreamIsBack(t *testing.T) {
	var answers atomic.Int64
	get := func(p *testProxy) { p.dial(t).ask("GET a\r\n", "$-1\r\n") }
	for name, row := range map[string]struct {
		configure func(*testConfig)
		find      func(p *testProxy)
	}{
		"own":         {func(*testConfig) {}, get},
		"shared":      {sharing, get},
		"the monitor": {func(c *testConfig) { c.UpstreamAnswers = answers.Load }, func(*testProxy) { answers.Add(1) }},
	} {
		t.Run(name, func(t *testing.T) { silentSubscribersEnd(t, row.configure, row.find) })
	}
}

func silentSubscribersEnd(t *testing.T, configure func(*testConfig), find func(p *testProxy)) {
	var up atomic.Bool
	masters := &fakeMasters{}
	p := upstreamThatReturns(t, masters, &up, configure)
	tracks, waits, left := p.dial(t), p.dial(t), p.dial(t)
	for _, client := range []*testClient{waits, left} {
		client.ask("SUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	}
	left.ask("UNSUBSCRIBE\r\n", confirmed("*", "unsubscribe", "lock:a", 0))
	tracks.ask("HELLO 3\r\nCLIENT TRACKING ON\r\n", helloText(3)+wire.OK)
	up.Store(true)
	find(p)
	waits.expectEnd("")
	left.ask("GET a\r\n", "$-1\r\n")
	tracks.ask("GET a\r\n", "_\r\n")
}

func TestPublishWithoutUpstream(t *testing.T) {
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure)
	client := p.dial(t)
	client.ask("PUBLISH news x\r\n", string(wire.ErrUpstreamNone))
	client.send("PUBLISH lock:a x\r\n")
	client.values(1)
	if seen := p.locks.seen(); len(seen) != 1 || seen[0] != "PUBLISH lock:a x" {
		t.Errorf("the lock plane was asked %q", seen)
	}
}
