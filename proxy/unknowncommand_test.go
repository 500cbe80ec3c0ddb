package proxy

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// The proxy's own words for what Redis does not know are Redis's.
func TestUnknownCommandIsWordedAsByRedis(t *testing.T) {
	redis := proxytest.StartRedis(t)
	long := strings.Repeat("x", 200)
	for _, args := range [][]string{
		{"nosuch"}, {"NoSuch", "a"}, {"nosuch", "a", "b"}, {"nosuch", long}, {long, "a"}, {long, long},
		{"nosuch", strings.Repeat("y", 60), strings.Repeat("z", 60), "a", "b", "c"},
		{"nosuch", strings.Repeat("y", 124), "a"}, {"nosuch", strings.Repeat("y", 125), "a"}, {"nosuch", strings.Repeat("y", 126), "a"},
		{"nosuch", "a\r\nb", "c\nd"}, {"no\r\nsuch", "a"}, {"nosuch", "a\x00b", "c"}, {"no\x00such", "a"}, {"", "a"}, {"nosuch", ""},
	} {
		var command [][]byte
		for _, arg := range args {
			command = append(command, []byte(arg))
		}
		client := dialTest(t, "unix", redis.Socket)
		client.send(string(resp.AppendCommand(nil, command...)))
		if got, want := string(wire.ErrUnknownCommand(command)), client.values(1); got != want {
			t.Errorf("%.300q:\n Redis says %q\n we         %q", args, want, got)
		}
		_ = client.Close()
	}
}

// An upstream that offers CLIENT MAINT_NOTIFICATIONS could lead a client past the proxy, so it never gets that.
func TestMaintenanceIsNotForwarded(t *testing.T) {
	redis, sent := proxytest.StartRedis(t), &recorder{}
	client := startTestProxy(t, redis, sent.configure, func(c *testConfig) {
		subcommand := []any{"client|maint_notifications", int64(-3), []any{}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, []any{}}
		table, err := route.Builtin().With([]any{[]any{"client", int64(-2), []any{}, int64(0), int64(0), int64(0), []any{}, []any{}, []any{}, []any{subcommand}}})
		if err != nil || table.Lookup(proxytest.Words("CLIENT MAINT_NOTIFICATIONS ON")) == nil {
			t.Fatal(err)
		}
		c.Router = c.Router.WithTable(table)
	}).dial(t)
	want := string(wire.ErrUnknownSubcommand(proxytest.Words("CLIENT MAINT_NOTIFICATIONS ON")))
	for _, before := range []string{"", "GET a\r\n"} {
		client.ask(before+"CLIENT MAINT_NOTIFICATIONS ON\r\n", strings.Repeat("$-1\r\n", len(before)/len("GET a\r\n"))+want)
	}
	if text := sent.take(); strings.Contains(text, "MAINT") {
		t.Errorf("the upstream got %q", text)
	}
}

// A command that the proxy does not know may have keys anywhere. So none that names a lock key reaches
// the upstream. If the upstream has told its commands, the client hears what Redis says of an unknown one.
func TestUnknownCommandOnALockKey(t *testing.T) {
	redis, sent := proxytest.StartRedis(t), &recorder{}
	for _, learned := range []bool{false, true} {
		client := startTestProxy(t, redis, sent.configure, func(c *testConfig) {
			c.Settings.Config.Upstream.Kind = config.UpstreamServer
			if learned {
				table, err := route.Builtin().With(redis.Commands(t))
				if err != nil {
					t.Fatal(err)
				}
				c.Router = c.Router.WithTable(table)
			}
		}).dial(t)
		direct := dialTest(t, "unix", redis.Socket)
		for _, line := range []string{"NoSuch lock:a", "NOSUCH 5 a lock:a", "OBJECT NOSUCH lock:a"} {
			want := string(wire.ErrUntoldCommand(proxytest.Words(line)[0]))
			if learned {
				direct.send(line + "\r\n")
				want = direct.values(1)
			}
			client.ask(line+"\r\n", want)
			for _, before := range []string{"", "PING\r\n", "GET a\r\n"} {
				client.ask("MULTI\r\n"+before+line+"\r\nEXEC\r\n", "+OK\r\n"+strings.Repeat("+QUEUED\r\n", strings.Count(before, "\n"))+want+string(wire.ErrExecAbort))
			}
		}
		client.ask("NOSUCH a\r\n", string(wire.ErrUnknownCommand(proxytest.Words("NOSUCH a"))))
		if got := sent.take(); strings.Contains(got, "lock:a") || !strings.Contains(got, respCommand("NOSUCH", "a")) {
			t.Errorf("the upstream got %q", got)
		}
	}
}
