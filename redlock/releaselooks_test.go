package redlock

import (
	"testing"

	"redlock-proxy/redlock/quorum"
)

// A first look may show too little to decide, and be followed by another one, because the masters
// have changed. The DEL then met what the first look showed, also late.
func TestADELMeetsWhatItsFirstLookShowedWhateverCameOfIt(t *testing.T) {
	saw := func(value string) quorum.Answer[lookAnswer] {
		return quorum.Answer[lookAnswer]{State: quorum.Answered, Value: lookAnswer{reading: reading{value: []byte(value)}}}
	}
	l := &looks{}
	l.begin()
	l.meet([]quorum.Answer[lookAnswer]{saw("a"), {State: quorum.Unknown}, {State: quorum.Unknown}})
	l.metLate = map[int]quorum.Answer[lookAnswer]{2: saw("a")}
	l.begin()
	now := []quorum.Answer[lookAnswer]{saw("a"), saw("a"), saw("a")}
	l.meet(now)
	if values := l.deletable(now, nil); len(values) != 1 || string(values[0].value) != "a" {
		t.Errorf("it may delete %v", values)
	}
	if len(l.met) != 3 || l.met[1].State.Heard() {
		t.Errorf("it met %v", l.met)
	}
}
