package route

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

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
