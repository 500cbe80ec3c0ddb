package run

import "testing"

// A transaction follows only if its guard says yes. A reply that is no answer does not
// mean no.
func TestGuardsThatDoNotSay(t *testing.T) {
	const ok, yes, no, refused = "+OK\r\n", ":1\r\n", ":0\r\n", "-NOPERM you may not\r\n"
	for _, row := range []struct {
		replies []string
		same    bool
		fails   bool
	}{
		{[]string{ok, yes}, true, false},
		{[]string{ok, no}, false, false},
		{[]string{ok, yes, ok, yes}, true, false},
		{[]string{ok, no, ok, yes}, false, false},
		{[]string{refused, yes}, false, true},
		{[]string{ok, refused}, false, true},
		{[]string{ok, yes, refused, yes}, false, true},
		{[]string{ok, "$-1\r\n"}, false, true},
	} {
		var replies [][]byte
		for _, r := range row.replies {
			replies = append(replies, []byte(r))
		}
		if same, err := stillSame(replies); same != row.same || (err != nil) != row.fails {
			t.Errorf("%q: %v, %v", row.replies, same, err)
		}
	}
}
