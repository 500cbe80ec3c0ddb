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

// Only a marker of a later version says that this program is out of date.
func TestUnreadableSaysWhatToDo(t *testing.T) {
	const later, earlier, none = "of a later version", "of an earlier version", "is no marker"
	for text, want := range map[string]string{
		"redlock-proxy/5 db=0":        later,
		"redlock-proxy/10":            later,
		"redlock-proxy/3 db=0 set=s":  earlier,
		"redlock-proxy/1 db=0":        earlier,
		"redlock-proxy/2 and no more": none,
		"redlock-proxy/4":             none,
		"redlock-proxy/-1":            none,
		"redlock-proxy/x 9":           none,
		"redlock-proxy/":              none,
		"9":                           none,
		"":                            none,
	} {
		if got := Unreadable(text); !strings.Contains(got, want) || IsLater(text) != (want == later) {
			t.Errorf("%q: %s", text, got)
		}
	}
}
