package heal

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
)

// The questions are about what each master holds:
//
//	find A/9000 A/9000 A/9000 - ? -> lacks 4, 9000 left
//
// A copy is a value, which may have so many milliseconds left behind a slash. "-" is no
// copy. A and B are tokens that identify a holder, and any other word is the value itself.
// In place of a copy:
//
//	?            the master gave no answer
//	amnesic:X    the master showed X, and may have forgotten locks
//
// "find-but 4" is about targets without master 4. "still" has an earlier look and a later
// one. "patch" says for how long each master gets its copy. "look" says which masters have a key (y) or
// not (n), and whether the key is looked at more closely.
func TestData(t *testing.T) { datatest.Run(t, ask) }

const (
	tookOfLook = 20 * time.Millisecond
	masterTime = 1_000_000 // of master 1; each further one is a second ahead
)

var testBounds = bounds{least: 4000, most: 60}

func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	switch rule {
	case "find":
		return found(testBounds.find(copiesOf(rest), 31))
	case "find-but":
		spared, rest, _ := strings.Cut(rest, " ")
		return found(testBounds.find(copiesOf(rest), 31&^(1<<(number(t, spared)-1))))
	case "still":
		before, now, _ := strings.Cut(rest, ", then ")
		earlier, _ := testBounds.find(copiesOf(before), 31)
		later, _ := testBounds.find(copiesOf(now), 31)
		g, same := later.still(earlier, 5)
		if !same {
			return "no"
		}
		return "yes, " + numbers(g.lack)
	case "look":
		return strconv.FormatBool(isLacked(existsOf(rest), 0, 31))
	case "look-but":
		spared, rest, _ := strings.Cut(rest, " ")
		return strconv.FormatBool(isLacked(existsOf(rest), 0, 31&^(1<<(number(t, spared)-1))))
	case "patch":
		c := copiesOf(rest)
		g, _ := testBounds.find(c, 31)
		p := g.patch(c, tookOfLook, 50*time.Millisecond)
		var out []string
		for i := range c {
			if image, writes := p.writes[i]; writes {
				ends := "for ever"
				if image.Expiry() != effect.NoExpiry {
					ends = fmt.Sprintf("until +%d", image.Expiry()-c[i].Value.Now)
				}
				out = append(out, fmt.Sprintf("%d %s, written by +%d", i+1, ends, p.until[i]-c[i].Value.Now))
			}
		}
		return strings.Join(append(out, "covers "+p.lives.String()), "; ")
	}
	t.Fatalf("no rule %q", rule)
	return ""
}

func found(g gap, f finding) string {
	switch {
	case f != lacks:
		return f.String()
	case g.left == effect.NoExpiry:
		return fmt.Sprintf("lacks %s, permanent", numbers(g.lack))
	}
	return fmt.Sprintf("lacks %s, %d left", numbers(g.lack), g.left)
}

func numbers(masters quorum.Set) string {
	var list []string
	for i := range 5 {
		if masters.Has(i) {
			list = append(list, strconv.Itoa(i+1))
		}
	}
	return strings.Join(list, " ")
}

func number(t *testing.T, word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// existsOf are the answers to one EXISTS.
func existsOf(words string) (answers []quorum.Answer[[]bool]) {
	for word := range strings.FieldsSeq(words) {
		a := quorum.Answer[[]bool]{State: quorum.Answered}
		rest, amnesic := strings.CutPrefix(word, "amnesic:")
		switch {
		case amnesic:
			a.State, a.Value = quorum.Discounted, []bool{rest == "y"}
		case word == "?":
			a.State = quorum.Unknown
		default:
			a.Value = []bool{word == "y"}
		}
		answers = append(answers, a)
	}
	return answers
}

// A copy of a string is in an encoding that each server reads, whatever the quorum's is.
// Any other copy is the quorum's, to the byte.
func TestPayloadOfACopy(t *testing.T) {
	plain := rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte("7")}})
	short := []byte("\x00\xc0\x07\t\x00\xa4?\x19n\xd7-\xad#") // the number 7 as an integer of 8 bits
	list := rdb.Dump(rdb.Value{Kind: rdb.List, Items: [][]byte{[]byte("7")}})
	for name, row := range map[string]struct{ held, want []byte }{"string": {short, plain}, "list": {list, list}} {
		p := gap{holding: holding{content: effect.Image{Dump: row.held}}, lack: 1}.patch(make(copies, 1), 0, 0)
		if got := p.writes[0].Dump; !bytes.Equal(got, row.want) {
			t.Errorf("%s: %q is copied as %q, want %q", name, row.held, got, row.want)
		}
	}
}

// A master that refuses EXISTS does not lack the key.
func TestARefusalIsNoAnswer(t *testing.T) {
	if there, err := parseExists([][]byte{[]byte("-NOPERM no\r\n")}); err == nil {
		t.Errorf("it is taken for %v", there)
	}
}

func copiesOf(words string) (c copies) {
	for i, word := range strings.Fields(words) {
		a := quorum.Answer[effect.Image]{State: quorum.Answered}
		if rest, amnesic := strings.CutPrefix(word, "amnesic:"); amnesic {
			a.State, word = quorum.Discounted, rest
		}
		value, ttl, expires := strings.Cut(word, "/")
		if token, named := map[string]string{"A": "the token of client A", "B": "the token of client B"}[value]; named {
			value = token
		}
		a.Value = effect.Image{PTTL: effect.NoExpiry, Now: int64(masterTime + i*1000)}
		switch {
		case word == "?":
			a = quorum.Answer[effect.Image]{State: quorum.Unknown}
		case word == "-":
			a.Value.PTTL = effect.NoKey
		default:
			a.Value.Dump = rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(value)}})
		}
		if n, err := strconv.ParseInt(ttl, 10, 64); expires && err == nil {
			a.Value.PTTL = n
		}
		c = append(c, a)
	}
	return c
}
