package proxy

import (
	"net"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

var testUsers = config.Auth{Users: []config.User{
	{Name: "alice", Password: "pw", May: config.RightBoth},
	{Name: "locker", Password: "pw", May: config.RightLocks},
	{Name: "reader", Password: "pw", May: config.RightUpstream},
}}

func startWithUsers(t *testing.T, redis *proxytest.Redis, configure ...func(*testConfig)) *testProxy {
	t.Helper()
	users := func(c *testConfig) { c.Users = config.NewAccounts(testUsers, 0) }
	return startTestProxy(t, redis, append(configure, users)...)
}

// Logging in is answered as by a Redis that has the same users.
func TestUsersLogInAsToRedis(t *testing.T) {
	redis := proxytest.StartRedis(t)
	redis.Ask(t, "ACL SETUSER alice on >pw ~* &* +@all")
	redis.Ask(t, "ACL SETUSER locker on >pw ~* &* +@all")
	redis.Ask(t, "ACL SETUSER default off resetpass")
	p := startWithUsers(t, nil)
	plain, client := redis.Dial(t), p.dial(t)
	for _, command := range []string{
		"PING", "ACL WHOAMI", "GET lock:a", "HELLO 3", "AUTH", "AUTH a b c", "AUTH pw", "AUTH default pw", "AUTH default", "AUTH bob pw",
		"AUTH alice wrong", "AUTH alice " + strings.Repeat("x", 1000), "HELLO 2 AUTH alice wrong", "PING",
		"AUTH alice pw", "PING", "ACL WHOAMI", "ACL WHOAMI x", "AUTH alice wrong", "ACL WHOAMI",
		"HELLO 2 AUTH locker wrong", "ACL WHOAMI", "AUTH locker pw", "ACL WHOAMI",
		"RESET", "PING", "HELLO 3 AUTH alice nothing", "AUTH locker pw", "ACL WHOAMI", "QUIT",
	} {
		want := (&testClient{plain, t}).exchange(command)
		if got := client.exchange(command); got != want {
			t.Errorf("%.50s: got %q, Redis says %q", command, got, want)
		}
	}
}

// exchange sends a command and returns the one line of its reply, with the
// line behind it if that is a bulk's.
func (c *testClient) exchange(command string) string {
	c.t.Helper()
	c.send(command + "\r\n")
	reply := c.line()
	if strings.HasPrefix(reply, "$") && reply != "$-1\r\n" {
		reply += c.line()
	}
	return reply
}

func (c *testClient) line() string {
	c.t.Helper()
	var line []byte
	for one := make([]byte, 1); len(line) == 0 || line[len(line)-1] != '\n'; line = append(line, one[0]) {
		if n, err := c.Read(one); n == 0 {
			c.t.Fatalf("after %q: %v", line, err)
		}
	}
	return string(line)
}

// Commands that a user may not send are refused in Redis's words. A real Redis gives
// these to users with the same rights.
func TestUsersMayNot(t *testing.T) {
	redis := proxytest.StartRedis(t)
	redis.Ask(t, "ACL SETUSER locker on >pw ~lock:* resetchannels &lock:* +@all -config -flushall -keys -scan -monitor -script|flush -client|kill -acl|setuser -eval")
	redis.Ask(t, "ACL SETUSER reader on >pw ~app resetchannels &news +@all")
	p := startWithUsers(t, nil, (&fakeMasters{}).configure)
	for user, commands := range map[string][]string{
		"locker": {
			"GET app", "SET app 1", "MGET lock:a app", "DEL lock:a app", "RENAME lock:a app", "WATCH app", "BLPOP app 1", "XREAD STREAMS app 0",
			"SORT lock:a STORE app", "OBJECT ENCODING app", "SUBSCRIBE news", "SUBSCRIBE lock:a news", "PSUBSCRIBE n*", "PUBLISH news x", "CONFIG GET port",
			"FLUSHALL", "KEYS *", "SCAN 0", "MONITOR", "SCRIPT FLUSH", "CLIENT KILL ID 3", "ACL SETUSER x", "EVAL 1 0", "NOSUCH", "GET", "GET a b", "CONFIG GET",
			"MULTI", "GET app", "PING", "EXEC", "EXEC", "MULTI", "SUBSCRIBE news", "DISCARD",
		},
		"reader": {
			"GET lock:a", "SET lock:a 1 NX", "MGET lock:a app", "DEL app lock:a", "WATCH lock:a", "BLPOP lock:a 1", "EVAL return(1) 1 lock:a", "SUBSCRIBE lock:a",
			"SUBSCRIBE news lock:a", "PSUBSCRIBE lock:*", "PUBLISH lock:a x", "SPUBLISH lock:a x", "MULTI", "GET lock:a", "EXEC",
		},
	} {
		plain, client := &testClient{redis.Dial(t), t}, p.dial(t)
		plain.ask("AUTH "+user+" pw\r\n", wire.OK)
		client.ask("AUTH "+user+" pw\r\n", wire.OK)
		for _, command := range commands {
			want := plain.exchange(command)
			if command == "SPUBLISH lock:a x" {
				continue // a sharded channel is never a lock's
			}
			if got := client.exchange(command); got != want {
				t.Errorf("%s, %s: got %q, Redis says %q", user, command, got, want)
			}
		}
	}
	if calls := p.locks.seen(); len(calls) > 0 {
		t.Errorf("the lock plane was asked %q", calls)
	}
}

// Commands that a user may send go where they would go for everybody.
func TestUsersMay(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startWithUsers(t, redis, (&fakeMasters{}).configure)
	locker := p.dial(t)
	locker.ask("HELLO 2 AUTH locker pw\r\n", helloText(2))
	locker.ask("SET lock:a 1 NX\r\nGET lock:a\r\n", "+OK\r\n$1\r\n1\r\n")
	locker.ask("PING\r\nECHO x\r\nSELECT 0\r\nCLIENT SETNAME me\r\nCLIENT GETNAME\r\n", "+PONG\r\n$1\r\nx\r\n+OK\r\n+OK\r\n$2\r\nme\r\n")
	locker.ask("CLIENT MAINT_NOTIFICATIONS ON\r\n", string(wire.ErrUnknownSubcommand([][]byte{[]byte("CLIENT"), []byte("MAINT_NOTIFICATIONS")})))
	locker.ask("MULTI\r\nPING\r\nGET lock:a\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n$1\r\n1\r\n")
	locker.ask("SCRIPT EXISTS x\r\nWAIT 0 0\r\n", "*1\r\n:0\r\n:0\r\n")
	locker.ask("SUBSCRIBE "+unlockChannel+"\r\n", confirmed("*", "subscribe", unlockChannel, 1))
	locker.ask("UNSUBSCRIBE\r\n", confirmed("*", "unsubscribe", unlockChannel, 0))
	reader := p.dial(t)
	reader.ask("AUTH reader pw\r\nSET app 1\r\nGET app\r\nCONFIG GET port\r\n", "+OK\r\n+OK\r\n$1\r\n1\r\n*2\r\n$4\r\nport\r\n$1\r\n0\r\n")
	reader.ask("MULTI\r\nGET app\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n$1\r\n1\r\n")
	if calls := p.locks.seen(); len(calls) != 3 {
		t.Errorf("the lock plane was asked %q", calls)
	}
}

// A client's password is for the proxy alone: at the upstream it could make the
// connection another user's.
func TestLoginsNeverReachTheUpstream(t *testing.T) {
	redis := proxytest.StartRedis(t)
	redis.Ask(t, "ACL SETUSER other on >pw ~* &* +@all")
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.ask("GET app\r\n", "$-1\r\n")
	for _, login := range []string{"AUTH other pw", "HELLO 2 AUTH other pw", "HELLO 2 SETNAME x AUTH other pw"} {
		client.ask("MULTI\r\nGET app\r\n"+login+"\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n"+string(wire.ErrNotInMulti)+string(wire.ErrExecAbort))
		client.ask("MULTI\r\n"+login+"\r\nEXEC\r\n", "+OK\r\n"+string(wire.ErrNotInMulti)+string(wire.ErrExecAbort))
	}
	client.ask("MONITOR\r\nHELLO 2 AUTH other pw\r\nAUTH other pw\r\n", "+OK\r\n"+string(wire.ErrHelloInPipe)+string(wire.ErrWrongPass))
	if clients := redis.Ask(t, "CLIENT LIST"); strings.Contains(clients, "user=other") {
		t.Errorf("at the upstream:\n%s", clients)
	}
}

// A user who may only use the upstream gets no message from the masters, whatever the
// pattern.
func TestMessagesOfTheMastersAreForLockUsers(t *testing.T) {
	masters := &fakeMasters{}
	p := startWithUsers(t, proxytest.StartRedis(t), masters.configure)
	reader := p.dial(t)
	reader.ask("AUTH reader pw\r\n", wire.OK)
	reader.ask("PSUBSCRIBE *\r\n", confirmed("*", "psubscribe", "*", 1))
	tracker := p.dial(t)
	tracker.ask("AUTH reader pw\r\nCLIENT TRACKING ON BCAST REDIRECT 1\r\n", wire.OK+"-ERR The client ID you want redirect to does not exist\r\n")
	tracker.send("HELLO 3\r\nCLIENT TRACKING ON BCAST\r\nECHO end\r\n")
	for !strings.HasSuffix(tracker.line(), "end\r\n") {
	}
	masters.expectNobody(t)
	masters.expectRequests(t)
}

// After a reload a user's rights hold from the next command on, a transaction
// under way is spoilt, and who is removed is disconnected: as with Redis.
func TestUsersChange(t *testing.T) {
	masters := &fakeMasters{}
	p := startWithUsers(t, proxytest.StartRedis(t), masters.configure)
	as := func(user string) *testClient {
		client := p.dial(t)
		client.ask("AUTH "+user+" pw\r\n", wire.OK)
		return client
	}
	kept, inMulti, listens, forgets := as("alice"), as("alice"), as("alice"), as("alice")
	removed, blocked := as("locker"), as("reader")
	inMulti.ask("MULTI\r\nGET lock:a\r\n", "+OK\r\n+QUEUED\r\n")
	listens.ask("SUBSCRIBE "+unlockChannel+"\r\n", confirmed("*", "subscribe", unlockChannel, 1))
	forgets.ask("SUBSCRIBE news\r\nUNSUBSCRIBE\r\n", confirmed("*", "subscribe", "news", 1)+confirmed("*", "unsubscribe", "news", 0))
	blocked.ask("GET nothing\r\n", "$-1\r\n")
	blocked.send("BLPOP nothing 0\r\n")
	next := config.NewAccounts(config.Auth{Users: []config.User{{Name: "alice", Password: "other", May: config.RightUpstream}}}, 0)
	p.change(func(s *config.Settings) { s.Users = next })
	p.clients.Reloaded(p.current.Load())
	for _, ended := range []*testClient{removed, listens} {
		ended.expectEnd("")
	}
	if n, err := blocked.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a client of a removed user still waits")
	}
	kept.ask("ACL WHOAMI\r\nGET lock:a\r\nGET app\r\n", "$5\r\nalice\r\n"+string(wire.ErrNoPermKeys)+"$-1\r\n")
	forgets.ask("GET lock:a\r\n", string(wire.ErrNoPermKeys))
	inMulti.ask("EXEC\r\n", string(wire.ErrExecAbort))
	late := p.dial(t)
	late.ask("AUTH alice pw\r\nAUTH locker pw\r\nAUTH alice other\r\n", string(wire.ErrWrongPass)+string(wire.ErrWrongPass)+wire.OK)
	if calls := p.locks.seen(); len(calls) > 0 {
		t.Errorf("the lock plane was asked %q", calls)
	}
}

// A client that logged in a moment before the users changed may have been missed then. Its
// next command finds that out.
func TestARemovedUserIsFoundOut(t *testing.T) {
	p := startWithUsers(t, nil)
	client := p.dial(t)
	client.ask("AUTH alice pw\r\n", wire.OK)
	p.current.Replace(func(old config.Settings) config.Settings {
		old.Users = config.NewAccounts(config.Auth{May: config.RightBoth}, 0)
		return old
	})
	client.send("PING\r\nPING\r\n")
	client.expectEnd("")
	p.dial(t).ask("PING\r\nACL WHOAMI\r\nAUTH default any\r\n", "+PONG\r\n$7\r\ndefault\r\n+OK\r\n")
}

// A refused login is counted and logged, at most once a second, without what
// the client has sent.
func TestRefusedLoginsAreMadeKnown(t *testing.T) {
	log := &proxytest.Log{}
	p := startWithUsers(t, nil, func(c *testConfig) { c.log = newTextLog(log) })
	client := p.dial(t)
	for range 20 {
		client.ask("AUTH alice hunter2\r\nAUTH hunter2 x\r\n", string(wire.ErrWrongPass)+string(wire.ErrWrongPass))
	}
	text := log.String()
	if n := strings.Count(text, "wrong user name or password"); n == 0 || n > 10 {
		t.Errorf("%d lines:\n%s", n, text)
	}
	if !strings.Contains(text, "user=alice") || strings.Contains(text, "hunter2") || !strings.Contains(text, client.LocalAddr().(*net.TCPAddr).String()) {
		t.Errorf("logged:\n%s", text)
	}
	if got := p.counter(t, "redlock_logins_refused_total", ""); got != 40 {
		t.Errorf("counted %v", got)
	}
}
