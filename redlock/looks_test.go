package redlock

import (
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
)

// A DEL that looks again knows a counter that has gone on, and nothing else, as the same lock.
func TestWhatGoesOnBetweenTheLooksOfADEL(t *testing.T) {
	for _, row := range []struct {
		before, after string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"5", "5", true}, {"5", "6", true}, {"5", "4", false},
		{"-5", "-4", true}, {"-5", "a", false}, {"a", "5", false}, {"5", "a", false},
	} {
		seen := func(value string) lookAnswer { return lookAnswer{reading: reading{value: []byte(value)}} }
		if got := seen(row.before).goesOnAs(seen(row.after)); got != row.want {
			t.Errorf("from %s to %s: %v", row.before, row.after, got)
		}
	}
}

// A DEL that has waited until the copies are quiet deletes what it met, if the quiet copies show it. It
// deletes nothing if it met nothing, or if the number of masters has changed since then.
func TestADELThatHasWaitedDeletesWhatItMet(t *testing.T) {
	answers := func(n int) []quorum.Answer[lookAnswer] {
		all := make([]quorum.Answer[lookAnswer], n)
		for i := range all {
			all[i] = quorum.Answer[lookAnswer]{State: quorum.Answered, Value: lookAnswer{reading: reading{value: []byte("a")}}}
		}
		return all
	}
	images := func(n int, value string) []effect.Image {
		all := make([]effect.Image, n)
		for i := range all {
			all[i] = effect.Image{Dump: rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(value)}}), PTTL: 1000}
		}
		return all
	}
	for name, row := range map[string]struct {
		met   []quorum.Answer[lookAnswer]
		quiet []effect.Image
		want  int
	}{
		"it met them":                        {answers(3), images(3, "a"), 1},
		"they are another's":                 {answers(3), images(3, "b"), 0},
		"it met nothing":                     {nil, images(3, "a"), 0},
		"it met nothing, and did not wait":   {nil, nil, 0},
		"it met them, and did not wait":      {answers(3), nil, 1},
		"a master came since it met them":    {answers(2), images(3, "a"), 0},
		"a master came, and it did not wait": {answers(2), nil, 0},
		"a master went before they rested":   {answers(3), images(2, "a"), 0},
	} {
		l := &looks{count: 2, met: row.met}
		if got := l.deletable(answers(3), row.quiet); len(got) != row.want {
			t.Errorf("%s: it deletes %v", name, got)
		}
	}
}
