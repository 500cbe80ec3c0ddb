package corpus

import "testing"

// TestComparisons has for each rule a pair of replies that it accepts and one that it does not.
func TestComparisons(t *testing.T) {
	for _, test := range []struct {
		rule       comparison
		plain, got string
		want       bool
	}{
		{Exact, ":1\r\n", ":1\r\n", true},
		{Exact, ":1\r\n", ":2\r\n", false},
		{remaining, ":100000\r\n", ":99990\r\n", true},
		{remaining, ":100000\r\n", ":94000\r\n", false},
		{remaining, ":1\r\n", ":0\r\n", false},
		{remaining, "*2\r\n$1\r\na\r\n:9000\r\n", "*2\r\n$1\r\na\r\n:9001\r\n", true},
		{remaining, "*2\r\n$1\r\na\r\n:9000\r\n", "*2\r\n$1\r\nb\r\n:9000\r\n", false},
		{remaining, "$6\r\n100000\r\n", "$6\r\n100001\r\n", false},
		{remainingSeconds, ":100\r\n", ":99\r\n", true},
		{remainingSeconds, ":100\r\n", ":94\r\n", false},
		{remainingSeconds, ":100\r\n", ":1000\r\n", false},
		{remainingSeconds, ":-1\r\n", ":-2\r\n", false},
		{idleSeconds, ":0\r\n", ":1\r\n", true},
		{idleSeconds, ":0\r\n", ":6\r\n", false},
		{idleSeconds, ":0\r\n", "$-1\r\n", false},
		{idle, "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:0\r\n:1\r\n", "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:7\r\n:1\r\n", true},
		{idle, "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:0\r\n:1\r\n", "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:0\r\n:2\r\n", false},
		{idle, "*4\r\n$7\r\npending\r\n:0\r\n$4\r\nidle\r\n:3\r\n", "*4\r\n$7\r\npending\r\n:0\r\n$4\r\nidle\r\n:9\r\n", true},
		{idle, "*4\r\n$7\r\npending\r\n:0\r\n$4\r\nidle\r\n:3\r\n", "*4\r\n$7\r\npending\r\n:1\r\n$4\r\nidle\r\n:3\r\n", false},
		{idle, ":1\r\n", ":2\r\n", false},
		{Hello, "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:5\r\n", "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:77777\r\n", true},
		{Hello, "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:5\r\n", "%2\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:5\r\n", false},
		{Hello, "*2\r\n$7\r\nmodules\r\n*1\r\n$1\r\nv\r\n", "*2\r\n$7\r\nmodules\r\n*0\r\n", true},
		{Hello, "*2\r\n$7\r\nmodules\r\n*0\r\n", "*2\r\n$7\r\nmodules\r\n*1\r\n$1\r\nv\r\n", false},
		{unordered, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:1\r\n", true},
		{unordered, "*2\r\n:1\r\n:2\r\n", "*2\r\n:2\r\n:2\r\n", false},
		{Shape, "*1\r\n:1\r\n", "*1\r\n:2\r\n", true},
		{Shape, "*1\r\n:1\r\n", "*1\r\n$1\r\n1\r\n", false},
		{declined, ":1\r\n", "-ERR FCALL on lock keys is not supported by this proxy\r\n", true},
		{declined, "-ERR no\r\n", "-ERR no\r\n", true},
		{declined, ":1\r\n", "-QUORUMLOST no\r\n", false},
		{declined, "-ERR no\r\n", ":1\r\n", false},
	} {
		if got := test.rule.Equal([]byte(test.plain), []byte(test.got)); got != test.want {
			t.Errorf("%s: %q and %q: %v, want %v", test.rule, test.plain, test.got, got, test.want)
		}
	}
}
