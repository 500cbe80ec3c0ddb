package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// reloadRules gives a test proxy other rules.
func (p *testProxy) reloadRules(rules route.Rules, coming, leaving time.Duration) {
	p.current.Replace(func(old config.Settings) config.Settings {
		old.Router = old.Router.WithRules(rules, time.Now(), coming, leaving)
		return old
	})
}

// Sessions see new rules with their next command, keep their connections, and
// use moved keys again only when their time has come.
func TestSessionSeesNewRules(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client := p.dial(t)
	client.ask("SET lock:a 1 NX\r\nSET job:a 1 NX\r\n", "+OK\r\n+OK\r\n")
	p.reloadRules(route.Rules{{Match: "lock:*", DB: route.AnyDB}, {Match: "job:*", DB: route.AnyDB}}, time.Hour, time.Hour)
	refusal := string(wire.ErrMoving(p.current.Load().Router.Moves[0].Coming))
	if !strings.HasPrefix(refusal, "-TRYAGAIN ") {
		t.Errorf("%q", refusal)
	}
	client.ask("SET job:a 2 NX\r\nGET lock:a\r\nGET plain\r\n", refusal+"$1\r\n1\r\n$-1\r\n")
	client.ask("MULTI\r\nGET job:a\r\nEXEC\r\n", "+OK\r\n"+refusal+string(wire.ErrExecAbort))
	p.current.Replace(func(old config.Settings) config.Settings {
		router := *old.Router
		router.Moves = []route.Move{{Was: router.Moves[0].Was}} // its time is over
		old.Router = &router
		return old
	})
	client.ask("SET job:a 2 NX\r\nGET job:a\r\n", "+OK\r\n$1\r\n2\r\n") // on the masters now
	if got := redis.Ask(t, "GET job:a"); got != "$1\r\n1\r\n" {
		t.Errorf("the upstream has %q", got)
	}
}

// A transaction, or a WATCH, that began under other rules would execute where
// its keys are no more, however late EXEC comes.
func TestTransactionsEndWithTheirRules(t *testing.T) {
	redis := proxytest.StartRedis(t)
	other := route.Rules{{Match: "other:*", DB: route.AnyDB}}
	for i, row := range []struct{ before, answer, after, want string }{
		{"MULTI\r\nSET job:a 1\r\n", "+OK\r\n+QUEUED\r\n", "EXEC\r\nGET plain\r\n", string(wire.ErrExecRules) + "$-1\r\n"},
		{"MULTI\r\nSET lock:a 1\r\n", "+OK\r\n+QUEUED\r\n", "EXEC\r\nGET plain\r\n", string(wire.ErrExecRules) + "$-1\r\n"},
		{"MULTI\r\n", "+OK\r\n", "EXEC\r\nGET plain\r\n", string(wire.ErrExecRules) + "$-1\r\n"},
		{"MULTI\r\nSET job:a 1\r\n", "+OK\r\n+QUEUED\r\n", "DISCARD\r\nGET plain\r\n", "+OK\r\n$-1\r\n"},
		{"WATCH job:a\r\n", "+OK\r\n", "MULTI\r\nSET plain 1\r\nEXEC\r\nGET plain\r\n", "+OK\r\n+QUEUED\r\n" + string(wire.ErrExecRules) + "$-1\r\n"},
		{"WATCH lock:a\r\n", "+OK\r\n", "MULTI\r\nPING\r\nEXEC\r\nGET plain\r\n", "+OK\r\n+QUEUED\r\n" + string(wire.ErrExecRules) + "$-1\r\n"},
		{"WATCH job:a\r\n", "+OK\r\n", "UNWATCH\r\nMULTI\r\nPING\r\nEXEC\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			p := startTestProxy(t, redis)
			client := p.dial(t)
			client.ask(row.before, row.answer)
			p.reloadRules(other, 0, 0)
			client.ask(row.after, row.want)
			client.ask("MULTI\r\nGET plain\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n") // and the next is as any
			if got := redis.Ask(t, "GET job:a"); got != "$-1\r\n" {
				t.Errorf("the upstream has %q", got)
			}
		})
	}
}

// The other settings that a reload may change apply at once to connected clients.
func TestSessionSeesNewSettings(t *testing.T) {
	p := startTestProxy(t, nil, func(c *testConfig) {
		c.Users = config.NewAccounts(config.Auth{Password: "old", May: config.RightBoth}, 0)
	})
	early, known := p.dial(t), p.dial(t)
	early.ask("PING\r\n", string(wire.ErrNoAuth))
	known.ask("AUTH old\r\n", "+OK\r\n")
	p.change(func(s *config.Settings) {
		s.Users = config.NewAccounts(config.Auth{Password: "new", May: config.RightBoth}, 0)
	})
	known.ask("PING\r\n", "+PONG\r\n") // as on Redis
	early.ask("AUTH old\r\n", string(wire.ErrWrongPass))
	early.ask("AUTH new\r\n", "+OK\r\n")
	late := p.dial(t)
	late.ask("PING\r\n", string(wire.ErrNoAuth))
	p.change(func(s *config.Settings) { s.Users = config.NewAccounts(config.Auth{May: config.RightBoth}, 0) })
	late.ask("PING\r\n", "+PONG\r\n")
	p.change(func(s *config.Settings) { s.Limits.Clients = 3 })
	p.dial(t).expectEnd(string(wire.ErrClientCap))
	p.change(func(s *config.Settings) { s.Limits.Bulk = 1 << 20 })
	late.send("*2\r\n$3\r\nGET\r\n$1048577\r\n")
	late.expectEnd(string(wire.ErrLength))
	p.change(func(s *config.Settings) { s.Limits.Idle = 20 * time.Millisecond })
	known.expectEnd("")
}

// Keys that leave the masters wait for the longest lock that any of them has
// granted; where no quorum tells, for as long as a lock is covered.
func TestLongestLockOnTheMasters(t *testing.T) {
	cfg := &config.Config{RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}
	for _, row := range []struct {
		longest [3]time.Duration
		voting  int
		want    time.Duration
	}{
		{[3]time.Duration{time.Second, time.Second, time.Second}, 3, 30 * time.Second},
		{[3]time.Duration{time.Second, time.Second, time.Minute}, 3, time.Minute},
		{[3]time.Duration{time.Minute, time.Hour, time.Minute}, 2, 10 * time.Minute},
		{[3]time.Duration{time.Second, time.Second, time.Second}, 1, 10 * time.Minute},
	} {
		status := redlock.Status{Needed: 2, Set: "s"}
		for i, longest := range row.longest {
			state := redlock.Voting
			if i >= row.voting {
				state = redlock.Unreachable
			}
			status.Masters = append(status.Masters, redlock.MasterStatus{State: state, Longest: longest})
		}
		if got := longestLock(status, cfg); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}
