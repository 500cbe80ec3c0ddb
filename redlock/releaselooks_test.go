package redlock

import (
	"testing"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/quorum"
)

// A first look may show too little to decide, and be followed by another one, because the masters
// have changed. The DEL then met what the first look showed, also late.
func TestADELMeetsWhatItsFirstLookShowedWhateverCameOfIt(t *testing.T) {
	saw := func(value string) quorum.Answer[reading] {
		return quorum.Answer[reading]{State: quorum.Answered, Value: reading{value: []byte(value)}}
	}
	l := &looks{}
	first := &ballot.Ballot[reading]{Answers: []quorum.Answer[reading]{saw("a"), {State: quorum.Unknown}, {}}}
	number := l.begin()
	l.add(number, first, 0, saw("a"))
	l.add(number, first, 2, saw("a")) // late
	number = l.begin()
	now := []quorum.Answer[reading]{saw("a"), saw("a"), saw("a")}
	for i, a := range now {
		l.add(number, &ballot.Ballot[reading]{Answers: now}, i, a)
	}
	if values := l.deletable(now); len(values) != 1 || string(values[0].value) != "a" {
		t.Errorf("it may delete %v", values)
	}
	if len(l.met) != 3 || l.met[1].State.Heard() {
		t.Errorf("it met %v", l.met)
	}
}
