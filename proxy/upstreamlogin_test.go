package proxy

import (
	"bytes"
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

// startUpstreamAuth is a proxy whose users are its upstream's. away cuts the
// upstream off for connections to come.
func startUpstreamAuth(t *testing.T, redis *proxytest.Redis, configure ...func(*testConfig)) (p *testProxy, away *atomic.Bool) {
	t.Helper()
	away = &atomic.Bool{}
	byUpstream := func(c *testConfig) {
		c.Users = config.NewAccounts(config.Auth{Upstream: true}, time.Hour)
		dial := c.DialUpstream
		c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("it is away")
			}
			return dial(ctx)
		}
	}
	return startTestProxy(t, redis, append(configure, byUpstream)...), away
}

func startRedisWithUsers(t *testing.T, args ...string) *proxytest.Redis {
	t.Helper()
	redis := proxytest.StartRedis(t, args...)
	redis.Ask(t, "ACL SETUSER alice on >pw ~app* ~lock:* &* +@all -flushall")
	redis.Ask(t, "ACL SETUSER bob on >pw2 ~* &* +@all")
	return redis
}

// With auth: upstream every login, and every command before and after it, is
// answered as by that upstream itself.
func TestUpstreamJudgesLogins(t *testing.T) {
	for name, args := range map[string][]string{"a password": {"--requirepass", proxytest.Password}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			redis := startRedisWithUsers(t, args...)
			p, _ := startUpstreamAuth(t, redis)
			plain, client := &testClient{redis.Dial(t), t}, p.dial(t)
			for _, command := range []string{
				"PING", "ACL WHOAMI", "GET app", "GET lock:a", "SET lock:a 1 NX PX 1000000", "DEL lock:a", "ECHO x", "SELECT 1", "SELECT 0",
				"CLIENT SETNAME me", "MULTI", "NOSUCH", "GET", "DISCARD", "AUTH", "AUTH a b c", "AUTH wrong", "AUTH default wrong", "AUTH carol pw",
				"AUTH alice wrong", "AUTH alice " + strings.Repeat("x", 1000), "HELLO 2 AUTH alice wrong", "HELLO 2 AUTH carol pw",
				"AUTH default " + proxytest.Password, "PING", "ACL WHOAMI", "FLUSHALL",
				"AUTH alice pw", "PING", "ACL WHOAMI", "SET app 1", "GET app", "SET other 1", "FLUSHALL", "SET lock:a 1 NX", "SET lock:a 2 NX",
				"AUTH alice wrong", "ACL WHOAMI", "HELLO 2 AUTH bob wrong", "ACL WHOAMI", "SELECT 1", "AUTH bob pw2", "ACL WHOAMI", "SET other 1", "SELECT 0",
				"DEL lock:a", "MULTI", "PING", "DISCARD", "RESET", "PING", "GET lock:a", "ACL WHOAMI", "AUTH bob pw2", "ACL WHOAMI", "EXISTS other app", "QUIT",
			} {
				want := plain.exchange(command)
				if got := client.exchange(command); got != want {
					t.Errorf("%.50s: got %q, Redis says %q", command, got, want)
				}
			}
		})
	}
}

// HELLO logs in, names and switches in one, and without AUTH needs a login
// where the upstream asks for one.
func TestUpstreamJudgesHello(t *testing.T) {
	redis := startRedisWithUsers(t, "--requirepass", proxytest.Password)
	p, _ := startUpstreamAuth(t, redis)
	client := p.dial(t)
	client.ask("HELLO 3\r\n", string(wire.ErrHelloNoAuth))
	client.ask("HELLO 3 AUTH alice wrong SETNAME me\r\n", string(wire.ErrWrongPass))
	client.ask("HELLO 3 AUTH alice pw SETNAME me\r\nACL WHOAMI\r\nCLIENT GETNAME\r\n", helloText(3)+"$5\r\nalice\r\n$2\r\nme\r\n")
	client.ask("SET lock:a 1 NX\r\nGET app\r\n", "+OK\r\n_\r\n")
	if list := redis.Ask(t, "CLIENT LIST"); !strings.Contains(list, "name=me ") || !strings.Contains(list, "user=alice") {
		t.Errorf("the upstream has\n%s", list)
	}
}

// Where the upstream takes everybody for its user default, no limit is put on
// a client's first command; where it asks for a password, the usual are.
func TestUpstreamDecidesLimitsBeforeLogin(t *testing.T) {
	long := "*42\r\n$4\r\nMSET\r\n"
	for i := range 20 {
		long += fmt.Sprintf("$3\r\nk%02d\r\n$1\r\nv\r\n", i)
	}
	long += "$3\r\nend\r\n" // 42 arguments are one too few
	open, _ := startUpstreamAuth(t, proxytest.StartRedis(t))
	open.dial(t).ask(long, "-ERR wrong number of arguments for 'mset' command\r\n")
	locked, _ := startUpstreamAuth(t, proxytest.StartRedis(t, "--requirepass", proxytest.Password))
	client := locked.dial(t)
	client.send(long)
	client.expectEnd("-ERR Protocol error: unauthenticated multibulk length\r\n")
}

// A client that begins in another database than the first one is there after
// its login.
func TestUpstreamLoginKeepsTheDatabase(t *testing.T) {
	redis := startRedisWithUsers(t, "--requirepass", proxytest.Password)
	p, _ := startUpstreamAuth(t, redis, func(c *testConfig) { c.Upstream = config.UpstreamLogin{User: "proxy", Password: "never sent", DB: 3} })
	p.dial(t).ask("AUTH alice pw\r\nSET app 3\r\n", "+OK\r\n+OK\r\n")
	if got := redis.Ask(t, "SELECT 3") + redis.Ask(t, "GET app"); !strings.Contains(got, "3") {
		t.Errorf("database 3 has %q", got)
	}
}

// While the upstream is away, whom it accepted before may use locks, and
// nobody else; when it is back it is asked again.
func TestUpstreamAwayLogins(t *testing.T) {
	redis := startRedisWithUsers(t, "--requirepass", proxytest.Password)
	p, away := startUpstreamAuth(t, redis)
	p.dial(t).ask("AUTH alice pw\r\n", wire.OK)
	p.dial(t).ask("AUTH bob pw2\r\n", wire.OK)
	away.Store(true)

	stranger := p.dial(t)
	for _, login := range []string{"AUTH alice wrong", "AUTH carol pw", "AUTH pw", "AUTH alice pw2", "HELLO 3 AUTH alice wrong", "HELLO 3"} {
		stranger.ask(login+"\r\nSET lock:s 1 NX\r\n", string(wire.ErrUpstreamDown)+string(wire.ErrUpstreamDown))
	}
	known := p.dial(t)
	known.send("HELLO 3 AUTH alice pw SETNAME me\r\n")
	for known.line() != "*0\r\n" {
	}
	known.ask("SET lock:a 1 NX\r\nACL WHOAMI\r\nSELECT 2\r\n", "+OK\r\n$5\r\nalice\r\n+OK\r\n")
	known.ask("GET app\r\n", string(wire.ErrUpstreamDown))
	other := p.dial(t)
	other.ask("AUTH bob pw2\r\nSET lock:b 1 NX\r\nAUTH alice wrong\r\n", wire.OK+wire.OK+string(wire.ErrUpstreamDown))
	other.ask("ACL WHOAMI\r\nAUTH alice pw\r\nACL WHOAMI\r\nAUTH bob pw2\r\n", "$3\r\nbob\r\n+OK\r\n$5\r\nalice\r\n+OK\r\n")

	redis.Ask(t, "ACL SETUSER bob resetpass >changed")
	away.Store(false)
	known.ask("GET app\r\nACL WHOAMI\r\nCLIENT GETNAME\r\n", "_\r\n$5\r\nalice\r\n$2\r\nme\r\n")
	if list := redis.Ask(t, "CLIENT LIST"); !strings.Contains(list, "name=me ") || !strings.Contains(list, "db=2 ") {
		t.Errorf("the upstream has\n%s", list)
	}
	other.send("GET app\r\nPING\r\n")
	other.expectEnd(string(wire.ErrWrongPass))
	away.Store(true)
	p.dial(t).ask("AUTH bob pw2\r\n", string(wire.ErrUpstreamDown))
}

// A default user without password is one that was accepted, too; and when the
// upstream begins to ask for one, it is not any more.
func TestUpstreamAwayDefaultUser(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p, away := startUpstreamAuth(t, redis)
	away.Store(true)
	p.dial(t).ask("SET lock:a 1 NX\r\n", string(wire.ErrUpstreamDown))
	away.Store(false)
	p.dial(t).ask("GET app\r\n", "$-1\r\n")
	away.Store(true)
	client := p.dial(t)
	client.ask("SET lock:a 1 NX\r\nACL WHOAMI\r\n", "+OK\r\n$7\r\ndefault\r\n")
	redis.Ask(t, "CONFIG SET requirepass secret")
	away.Store(false)
	client.send("GET app\r\nSET lock:b 1 NX\r\n")
	client.expectEnd(string(wire.ErrNoAuth))
	away.Store(true)
	p.dial(t).ask("SET lock:b 1 NX\r\n", string(wire.ErrUpstreamDown))
}

// The upstream's word holds for auth_cache, also in a session under way.
func TestUpstreamAwayForTooLong(t *testing.T) {
	redis := startRedisWithUsers(t, "--requirepass", proxytest.Password)
	p, away := startUpstreamAuth(t, redis)
	p.dial(t).ask("AUTH alice pw\r\n", wire.OK)
	away.Store(true)
	lasting, ending := p.dial(t), p.dial(t)
	for _, client := range []*testClient{lasting, ending} {
		client.ask("AUTH alice pw\r\nSET lock:a 1 NX\r\nDEL lock:a\r\n", wire.OK+wire.OK+":1\r\n")
	}
	p.change(func(s *config.Settings) { s.Users = config.NewAccounts(config.Auth{Upstream: true}, time.Nanosecond) })
	ending.send("SET lock:a 1 NX\r\nPING\r\n")
	ending.expectEnd(string(wire.ErrUpstreamDown))
	p.dial(t).ask("AUTH alice pw\r\n", string(wire.ErrUpstreamDown))
	away.Store(false)
	lasting.ask("SET lock:a 1 NX\r\nACL WHOAMI\r\n", "+OK\r\n$5\r\nalice\r\n")
}

// The connection of a user who is deleted at the upstream ends there, and here.
func TestUpstreamDeletesAUser(t *testing.T) {
	redis := startRedisWithUsers(t, "--requirepass", proxytest.Password)
	p, _ := startUpstreamAuth(t, redis)
	client := p.dial(t)
	client.ask("AUTH alice pw\r\nSET lock:a 1 NX\r\n", wire.OK+wire.OK)
	redis.Ask(t, "ACL DELUSER alice")
	client.expectEnd("")
	late := p.dial(t)
	late.ask("AUTH alice pw\r\nGET lock:a\r\n", string(wire.ErrWrongPass)+string(wire.ErrNoAuth))
}

// A client may send its login and what follows in one go, or byte by byte:
// nothing overtakes the login.
func TestUpstreamJudgesAPipeline(t *testing.T) {
	redis := startRedisWithUsers(t, "--requirepass", proxytest.Password)
	p, _ := startUpstreamAuth(t, redis)
	var request []byte
	for _, command := range []string{"AUTH alice pw", "SELECT 2", "SET lock:p 1 NX", "DEL lock:p", "GET app", "GET other", "AUTH bob wrong", "ACL WHOAMI", "RESET", "GET lock:p", "AUTH bob pw2", "ACL WHOAMI"} {
		request = append(request, proxytest.EncodeCommand(bytes.Fields([]byte(command))...)...)
	}
	const noPerm = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	want := wire.OK + wire.OK + wire.OK + ":1\r\n$-1\r\n" + noPerm + string(wire.ErrWrongPass) + "$5\r\nalice\r\n" + wire.Reset + string(wire.ErrNoAuth) + wire.OK + "$3\r\nbob\r\n"
	p.dial(t).ask(string(request), want)
	slow := p.dial(t)
	for i := range request {
		slow.send(string(request[i : i+1]))
	}
	slow.expect(want)
}
