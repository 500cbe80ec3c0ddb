package proxy

import (
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
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
