package redlock

import (
	"strings"
	"testing"
	"time"
)

func TestMarkerSaysWhenItsSetBegan(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	m := marker{member: 1, members: 1, epoch: 1, joined: []string{"1"}, run: "r"}
	for set, want := range map[string]time.Time{
		newSetID(now, time.Second, 7):                   now,
		newSetID(now.AddDate(1, 0, 0), time.Second, 7):  {},
		newSetID(now.AddDate(-9, 0, 0), time.Second, 7): {},
		strings.Repeat("g", 16):                         {},
		"abc":                                           {},
	} {
		m.set = set
		if facts, ok := readMarkerFacts(m.String(), now); !ok || !facts.Founded.Equal(want) {
			t.Errorf("set %s is said to have begun at %v, want %v", set, facts.Founded, want)
		}
	}
}
