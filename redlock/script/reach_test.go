package script

import "testing"

func TestScriptsThatReachTooFar(t *testing.T) {
	for _, row := range []struct{ text, refusal string }{
		{"redis.call('select', 3) return redis.call('set', KEYS[1], ARGV[1])", reachesDatabase},
		{"return server.pcall ( \"SELECT\", '3')", reachesDatabase},
		{"return redis.call([[select]], 3)", reachesDatabase},
		{"return redis.call'flushall'", reachesDatabase},
		{"return redis.call('move', KEYS[1], 3)", reachesDatabase},
		{"return redis.call('copy', KEYS[1], KEYS[1], 'DB', 3)", reachesDatabase},
		{"return redis.call('del', 'redlock-proxy:master')", reachesMarker},
		{"local k = 'redlock-proxy:' .. 'master' return redis.call('del', k)", reachesMarker},
		{"return redis.call('copy', KEYS[1], KEYS[2])", ""},
		{"return select('#', unpack(ARGV))", ""},
		{"return redis.call('set', KEYS[1], 'select')", ""},
		{"return redis.call('mget', 'moved', 'db')", ""},
	} {
		if got := Reach([]byte(row.text)); got != row.refusal {
			t.Errorf("%s: %q", row.text, got)
		}
	}
	for name, text := range corpus(t) {
		if got := Reach([]byte(text)); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
