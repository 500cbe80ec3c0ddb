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

// A place that was removed is on record, and is no master.
func TestFactsCountTheMastersThatCount(t *testing.T) {
	for joined, want := range map[string]int{"1 1 1": 3, "1 1 1 2@d": 4, "1 1 1 2+d": 4, "1 1 1 2-": 3, "1 1 1 3- 2-": 3} {
		list := strings.Fields(joined)
		m := Marker{Set: "s", Member: 1, Members: len(list), Epoch: 1, Joined: list, Run: "r"}
		if facts, ok := Read(m.String(), time.Now()); !ok || facts.Members != want {
			t.Errorf("%s: %d masters, want %d", joined, facts.Members, want)
		}
	}
}
