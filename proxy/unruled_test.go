package proxy

import (
	"io"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock/resp"
)

const (
	compareAndDelete = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	takeIfNone       = "if redis.call('exists',KEYS[1])==0 then return redis.call('set',KEYS[1],ARGV[1],'PX',90000) end"
	shaOfDelete      = "b998f9dfb154cdbea8cda65ad5177aadf0e945a2"
)

// sent is one command as bytes.
func sent(words ...string) string { return string(resp.AppendCommand(nil, words...)) }

// However a lock is sent, it is seen if it goes to the upstream, and only then.
func TestLocksWithoutRuleAreSeen(t *testing.T) {
	for name, shares := range map[string]func(*testConfig){"own": func(*testConfig) {}, "shared": sharing} {
		var watch *unruled.Watch
		ignores := func(c *testConfig) {
			c.Config = &[]config.Config{*c.Config}[0]
			c.Config.Ignore = []string{"once:*"}
			watch = c.Unruled
		}
		proxy := startTestProxy(t, proxytest.StartRedis(t), shares, ignores, withConsole)
		client := proxy.dial(t)
		client.ask("CLIENT SETINFO lib-name mylib\r\n", "+OK\r\n")
		for _, key := range []string{"lock:1", "once:1", "job:17", "job:18"} {
			client.ask("SET "+key+" me NX PX 90000\r\n", "+OK\r\n")
			client.ask("DEL "+key+"\r\n", ":1\r\n")
		}
		if list := watch.Found(proxy.current.Load().Router.Rules, nil); len(list) != 1 || list[0].Match != "job:*" || list[0].Uses != 2 {
			t.Errorf("%s: found %+v", name, list)
		}
		client.ask("REDLOCK UNRULED\r\n", "*1\r\n*14\r\n$7\r\npattern\r\n$5\r\njob:*\r\n$4\r\nuses\r\n:2\r\n$5\r\nfirst\r\n")
		for want, lines := range map[string][]string{
			"eval:*":  {sent("SET", "eval:1", "me", "NX"), sent("EVAL", compareAndDelete, "1", "eval:1", "me")},
			"text:*":  {sent("EVAL", takeIfNone, "1", "text:1", "me"), sent("EVAL", compareAndDelete, "1", "text:1", "me")},
			"sha:*":   {sent("SCRIPT", "LOAD", compareAndDelete), sent("SETNX", "sha:1", "me"), sent("EVALSHA", shaOfDelete, "1", "sha:1", "me")},
			"multi:*": {sent("SETNX", "multi:1", "me"), sent("MULTI"), sent("DEL", "multi:1"), sent("EXEC")},
			"watch:*": {sent("SET", "watch:1", "me", "NX"), sent("WATCH", "watch:1"), sent("MULTI"), sent("PING"), sent("DEL", "watch:1"), sent("EXEC")},
		} {
			other := proxy.dial(t)
			other.send(strings.Join(lines, "") + "QUIT\r\n")
			answers, err := io.ReadAll(other)
			seen := func(f unruled.Found) bool { return f.Match == want }
			if !slices.ContainsFunc(watch.Found(nil, nil), seen) {
				t.Errorf("%s: %s is not seen; the answers are %q, %v", name, want, answers, err)
			}
		}
		if n := watch.Uses(); n != 7 {
			t.Errorf("%s: %d uses", name, n)
		}
	}
}
