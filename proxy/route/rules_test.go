package route

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

func TestRulesFind(t *testing.T) {
	rules := Rules{
		{Match: "lock:*", DB: AnyDB},
		{Match: "*_LOCK", DB: AnyDB},
		{Match: "job-?", DB: 3},
		{Match: "lock:special", DB: AnyDB}, // never reached
		{Match: "exact", DB: AnyDB},
	}
	for _, row := range []struct {
		db   int
		key  string
		rule int
	}{
		{0, "lock:a", 0}, {0, "lock:", 0}, {0, "lock", -1}, {0, "Lock:a", -1}, {0, ":1:lock:a", -1},
		{0, "lock:special", 0}, {0, "a_LOCK", 1}, {0, "_LOCK", 1}, {0, "LOCK", -1}, {0, "a_LOCKS", -1},
		{3, "job-1", 2}, {0, "job-1", -1}, {AnyDB, "job-1", 2}, {3, "job-12", -1},
		{15, "exact", 4}, {0, "exacto", -1}, {0, "", -1},
		{0, "lock:\x00\xff\r\n", 0},
	} {
		var want *Rule
		if row.rule >= 0 {
			want = &rules[row.rule]
		}
		if got := rules.Find(row.db, []byte(row.key)); got != want {
			t.Errorf("database %d, %q: %+v, not %+v", row.db, row.key, got, want)
		}
	}
	everything := Rules{{Match: "*", DB: AnyDB}}
	for _, key := range []string{"", "a", "\x00"} {
		if everything.Find(0, []byte(key)) == nil {
			t.Errorf("* does not match the key %q", key)
		}
	}
}

func TestExample(t *testing.T) {
	for match, want := range map[string]string{
		"lock:*": "lock:demo", "*_LOCK": "demo_LOCK", "*": "demo", "a": "", "a*b*": "", "[ab]*": "", "a?*": "", "a b*": "",
	} {
		if got := (&Rule{Match: match, DB: AnyDB}).Example(); got != want {
			t.Errorf("%s: %q", match, got)
		}
	}
	if got := (&Rule{Match: "a*", DB: 2}).Example(); got != "" {
		t.Errorf("the example of a rule for database 2 is not in database 0: %q", got)
	}
}

// TestGlobTable holds cases that are easy to get wrong. A server gave the results; see
// the next test.
func TestGlobTable(t *testing.T) {
	for _, row := range []struct {
		pattern, text string
		match         bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", false}, {"**", "a", true}, {"a*", "a", true},
		{"*a", "a", true}, {"*a", "ba", true}, {"*a", "ab", false}, {"a**", "a", true},
		{"h?llo", "hello", true}, {"h?llo", "hllo", false},
		{"h[ae]llo", "hallo", true}, {"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true}, {"h[^e]llo", "hello", false},
		{"h[a-b]llo", "hbllo", true}, {"h[b-a]llo", "hallo", true}, {"h[a-b]llo", "hcllo", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {`a\`, `a\`, true}, {`\a`, "a", true},
		{"[", "[", false}, {"[^", "x", true}, {"[a", "a", true}, {"[a-", "-", true}, {"[]", "]", false}, {"[^]", "x", true},
		{`[\]]`, "]", true}, {`[a\`, `\`, true}, {"[a-]", "]", true}, {"[a-]", "[", false}, {"a]", "a]", true},
		{"*a*b*", "xaxbx", true}, {"*a*b*", "xbxa", false}, {"*?", "", false}, {"a*?", "a", false},
		{"[\x80-\xff]", "\xc3", true}, {"\xff", "\xff", true},
	} {
		if got := resp.GlobMatch(row.pattern, []byte(row.text)); got != row.match {
			t.Errorf("%q on %q: %t", row.pattern, row.text, got)
		}
	}
}

// TestGlobAgreesWithRedis compares resp.GlobMatch with SSCAN MATCH. The texts are short and
// made of the bytes that have a meaning in a glob.
func TestGlobAgreesWithRedis(t *testing.T) {
	server := proxytest.StartRedis(t)
	const alphabet = `abc-]^[\*?`
	random := rand.New(rand.NewPCG(5, 6))
	draw := func(most int) string {
		var text strings.Builder
		for range random.IntN(most + 1) {
			text.WriteByte(alphabet[random.IntN(len(alphabet))])
		}
		return text.String()
	}
	texts := map[string]bool{"": true}
	for range 400 {
		texts[draw(5)] = true
	}
	add := [][]byte{[]byte("SADD"), []byte("texts")}
	for text := range texts {
		add = append(add, []byte(text))
	}
	questions := [][][]byte{add}
	for range 3000 {
		pattern := draw(8)
		if pattern == "*" {
			continue // SCAN has a special case for it
		}
		questions = append(questions, [][]byte{[]byte("SSCAN"), []byte("texts"), []byte("0"), []byte("MATCH"), []byte(pattern), []byte("COUNT"), []byte("100000")})
	}
	matches := 0
	for i, reply := range server.Answers(t, questions)[1:] {
		pattern := string(questions[i+1][4])
		page := reply.([]any)
		if page[0] != "0" {
			t.Fatalf("the server gave only a part: %v", page[0])
		}
		for text := range texts {
			want := slices.Contains(page[1].([]any), any(text))
			if got := resp.GlobMatch(pattern, []byte(text)); got != want {
				t.Errorf("%q on %q: %t", pattern, text, got)
			}
			if want {
				matches++
			}
		}
	}
	if matches < 1000 {
		t.Errorf("only %d matches", matches)
	}
}

// A pattern with many stars takes polynomial time. Without globFrom's second result
// this test would not end within the age of the universe.
func TestGlobOfManyStars(t *testing.T) {
	if resp.GlobMatch(strings.Repeat("a*", 50)+"b", []byte(strings.Repeat("a", 300))) {
		t.Error("matches")
	}
}
