package scan

import (
	"strings"
	"testing"
	"time"
)

// copies are five masters: a letter is a voting master's content, "-" an absent key, "?"
// no answer, and a letter in brackets the copy of a master that may not vote.
func copiesOf(text string) (copies []Copy) {
	for i, word := range strings.Fields(text) {
		c := Copy{Heard: word != "?"}
		content := strings.Trim(word, "()")
		c.Votes = c.Heard && content == word
		if c.Heard && content != "-" {
			c.Type, c.Digest, c.TTL = "string", content, time.Duration(i+1)*time.Second
			copy(c.sum[:], content)
		}
		copies = append(copies, c)
	}
	return copies
}

func TestHold(t *testing.T) {
	for _, row := range []struct {
		copies                   string
		state                    HoldingState
		digest                   string
		holders, others, missing int
		ttl                      time.Duration
	}{
		{"a a a a a", Held, "a", 5, 0, 0, 3 * time.Second},
		{"a a a - -", Held, "a", 3, 0, 0, time.Second},
		{"a a a b ?", Held, "a", 3, 1, 1, time.Second},
		{"a a (a) (-) b", Unknown, "a", 2, 2, 2, time.Second},
		{"a a b b c", Disputed, "a", 2, 3, 0, time.Second},
		{"a a - - -", Free, "a", 2, 0, 0, time.Second},
		{"- - - - -", Free, "", 0, 0, 0, 0},
		{"- - - ? ?", Free, "", 0, 0, 2, 0},
		{"- - ? ? ?", Unknown, "", 0, 0, 3, 0},
		{"(a) (a) (a) - -", Unknown, "", 0, 3, 3, 0},
	} {
		h := Hold(copiesOf(row.copies))
		if h.State != row.state || h.Digest != row.digest || h.Holders != row.holders || h.Others != row.others || h.Missing != row.missing || h.Masters != 5 || h.Needed != 3 {
			t.Errorf("%s: %+v", row.copies, h)
		}
		if row.state == Held && h.TTL != row.ttl {
			t.Errorf("%s: %s left, not %s", row.copies, h.TTL, row.ttl)
		}
	}
	forEver := copiesOf("a a a a -")
	for i := range forEver[:3] {
		forEver[i].TTL = NoTTL
	}
	if h := Hold(forEver); h.TTL != NoTTL {
		t.Errorf("three of five live for ever: %s", h.TTL)
	}
}

func TestParseCopies(t *testing.T) {
	parse := func(replies ...string) ([]Copy, error) {
		var raw [][]byte
		for _, reply := range replies {
			raw = append(raw, []byte(reply))
		}
		return parseCopies(raw)
	}
	// DUMP of a key with the value "v", as Redis 7.0 replies it.
	const dump = "$13\r\n\x00\xc0\x05\n\x00\x00\x00\x00\x00\x00\x00\x00\x00\r\n"
	copies, err := parse(":1500\r\n", dump, ":-2\r\n", "$-1\r\n", ":-2\r\n", dump)
	if err != nil || copies[0].TTL != 1500*time.Millisecond || copies[0].Type == "" || len(copies[0].Digest) != 8 {
		t.Errorf("%+v %v", copies, err)
	}
	if err == nil && (copies[1].there() || copies[2].there()) {
		t.Errorf("absent keys: %+v", copies[1:])
	}
	if copies, err = parse(":9000000000000000\r\n", dump); err != nil || copies[0].TTL < 292*365*24*time.Hour {
		t.Errorf("a TTL of 285,000 years: %+v %v", copies, err)
	}
	for _, wrong := range [][]string{
		{"-NOPERM x\r\n", dump}, {":-1\r\n", "-ERR x\r\n"}, {"-LOADING x\r\n", "-LOADING x\r\n"},
	} {
		if copies, err := parse(wrong...); err == nil {
			t.Errorf("%q: %+v", wrong, copies)
		}
	}
}

// A large value is not read. Copies of it count as equal, and show no digest.
func TestLargeCopies(t *testing.T) {
	copies, err := parseCopies([][]byte{[]byte(":1500\r\n"), []byte("+hash\r\n"), []byte(":-2\r\n"), []byte("+none\r\n"), []byte(":-1\r\n"), []byte("+string\r\n")})
	if err != nil || copies[0].Type != "hash" || copies[0].TTL != 1500*time.Millisecond || copies[1].there() || copies[2].TTL != NoTTL {
		t.Fatalf("%+v %v", copies, err)
	}
	of := func(c Copy) Copy {
		c.Heard, c.Votes = true, true
		return c
	}
	hash, text := of(copies[0]), of(copies[2])
	if h := Hold([]Copy{hash, hash, text}); h.State != Held || !h.Large || h.Digest != "" || h.Holders != 2 || h.Text != nil {
		t.Errorf("%+v", h)
	}
}
