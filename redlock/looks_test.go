package redlock

import (
	"testing"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/toymaster"
)

// A DEL that looks again knows a counter that has gone on, or a string that has grown, as the same lock.
func TestWhatGoesOnBetweenTheLooksOfADEL(t *testing.T) {
	for _, row := range []struct {
		before, after string
		want          bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"5", "5", true}, {"5", "6", true}, {"5", "4", false},
		{"a", "ab", true}, {"", "b", false}, {"ab", "a", false}, {"-5", "-4", true}, {"-5", "a", false}, {"a", "5", false}, {"5", "a", false},
	} {
		seen := func(value string) reading { return reading{value: []byte(value)} }
		if got := seen(row.before).goesOnAs(seen(row.after)); got != row.want {
			t.Errorf("from %s to %s: %v", row.before, row.after, got)
		}
	}
	if collection := (reading{err: toymaster.WrongType}); !collection.goesOnAs(collection) || collection.goesOnAs(reading{value: []byte("a")}) {
		t.Error("a key that is no string goes on as another")
	}
}

// A DEL that looks again deletes what it met. It deletes nothing if it met nothing, or if the number of
// masters has changed since then.
func TestADELThatLooksAgainDeletesWhatItMet(t *testing.T) {
	answers := func(n int) []quorum.Answer[reading] {
		all := make([]quorum.Answer[reading], n)
		for i := range all {
			all[i] = quorum.Answer[reading]{State: quorum.Answered, Value: reading{value: []byte("a")}}
		}
		return all
	}
	for name, row := range map[string]struct {
		met  []quorum.Answer[reading]
		want int
	}{
		"it met them":    {answers(3), 1},
		"it met nothing": {nil, 0},
		"a master came":  {answers(2), 0},
	} {
		l := &looks{count: 2, met: row.met}
		if got := l.deletable(answers(3)); len(got) != row.want {
			t.Errorf("%s: it deletes %v", name, got)
		}
	}
}
