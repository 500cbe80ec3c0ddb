package marker

import (
	"strings"
	"testing"
	"time"
)

func TestMarkerSaysWhenItsSetBegan(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	m := Marker{Member: 1, Members: 1, Epoch: 1, Joined: []string{"1"}, Run: "r"}
	for set, want := range map[string]time.Time{
		NewSetID(now, time.Second, 7):                   now,
		NewSetID(now.AddDate(1, 0, 0), time.Second, 7):  {},
		NewSetID(now.AddDate(-9, 0, 0), time.Second, 7): {},
		strings.Repeat("g", 16):                         {},
		"abc":                                           {},
	} {
		m.Set = set
		if facts, ok := Read(m.String(), now); !ok || !facts.Founded.Equal(want) {
			t.Errorf("set %s is said to have begun at %v, want %v", set, facts.Founded, want)
		}
	}
}
