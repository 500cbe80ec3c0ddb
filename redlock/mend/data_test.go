package mend

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
)

// The questions are about what each master holds:
//
//	mend A B -, then A B - -> 2 becomes A; quiet 1 2 3
//
// A copy is a string, or a hash with one field ("field:value"), with the milliseconds that it has left behind a slash. "-" is no copy.
// In place of a copy:
//
//	?            the master gave no answer
//	amnesic:X    the master showed X, and may have forgotten locks
//
// "look" is about the first look. "mend" is about two looks, a second apart. Without
// ", then" the second look shows the same.
func TestData(t *testing.T) { datatest.Run(t, ask) }

const masterTime = 1_000_000 // of each master at the first look

func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	first, second, changes := strings.Cut(rest, ", then ")
	before := copiesOf(first, masterTime)
	switch rule {
	case "look":
		if before.ill() {
			return "ill"
		}
		return "leave"
	case "mend":
		if !changes {
			second = first
		}
		return told(copiesOf(second, masterTime+1000).remedy(before))
	}
	t.Fatalf("no rule %q", rule)
	return ""
}

func told(r remedy) string {
	var words, quiet []string
	for i, image := range r.quiet {
		switch {
		case r.change.Has(i) && r.model.There():
			words = append(words, fmt.Sprintf("%d becomes %s", i+1, bytes.Join(rdb.Read(r.model.Dump).Items, []byte(":"))))
		case r.change.Has(i):
			words = append(words, fmt.Sprintf("%d goes", i+1))
		}
		if image.There() {
			quiet = append(quiet, strconv.Itoa(i+1))
		}
	}
	if len(words) == 0 {
		words = append(words, "leave")
	}
	if len(quiet) > 0 {
		words = append(words, "quiet "+strings.Join(quiet, " "))
	}
	if r.again {
		words = append(words, "look again")
	}
	return strings.Join(words, "; ")
}

// copiesOf returns copies as they are at a time. The milliseconds that are left count from
// masterTime.
func copiesOf(words string, now int64) (c copies) {
	for _, word := range strings.Fields(words) {
		a := quorum.Answer[effect.Image]{State: quorum.Answered}
		if rest, amnesic := strings.CutPrefix(word, "amnesic:"); amnesic {
			a.State, word = quorum.Discounted, rest
		}
		value, ttl, expires := strings.Cut(word, "/")
		a.Value = effect.Image{PTTL: effect.NoExpiry, Now: now}
		switch {
		case word == "?":
			a = quorum.Answer[effect.Image]{State: quorum.Unknown}
		case word == "-":
			a.Value.PTTL = effect.NoKey
		default:
			v := rdb.Value{Kind: rdb.String, Items: bytes.Split([]byte(value), []byte(":"))}
			if len(v.Items) > 1 {
				v.Kind = rdb.Hash
			}
			a.Value.Dump = rdb.Dump(v)
		}
		if n, err := strconv.ParseInt(ttl, 10, 64); expires && err == nil {
			a.Value.PTTL = masterTime + n - now
		}
		c = append(c, a)
	}
	return c
}
