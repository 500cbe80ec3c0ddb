package roster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// changingRoster knows these members. The first masters have recorded exactly these, with a lock of a
// minute and a token. The others have recorded the members before the last change.
func changingRoster(members string, exact int, began time.Time) *Roster {
	joined := strings.Fields(members)
	before := slices.Clone(joined)
	before[len(before)-1], _ = marker.CutEntry(before[len(before)-1])
	var servers []Server
	for i := range joined {
		servers = append(servers, Server{Name: string(rune('a' + i))})
	}
	r := New(servers, false, 1)
	for i := range joined {
		m := marker.Marker{Set: "s", Member: i + 1, Members: len(joined), Epoch: 9, Joined: joined, Run: "r" + servers[i].Name, Longest: time.Minute, Token: 7}
		if i >= exact {
			m.Epoch, m.Joined, m.Longest, m.Token = 8, before, time.Second, 5
		}
		p := Place{Master: i}
		r.Connected(p, m.Run, "", Replication{}, began)
		r.Checked(p, m.String(), false, began, began)
	}
	r.adopt(began)
	for i := range exact {
		r.Asked(Place{Master: i}, began.Add(1), 7)
	}
	return r
}

// resized returns the members after the next step of a change, which was kept on record for so long.
func resized(members string, exact int, kept time.Duration) string {
	now := worldBegan.Add(kept)
	r := changingRoster(members, exact, worldBegan)
	r.keepsExactly(0, worldBegan)
	for i := range r.joined {
		r.Asked(Place{Master: i}, now, 0)
		r.Noted(Place{Master: i}, Standing{State: Certified}, now)
	}
	r.resize(now, worldLimits)
	return strings.Join(r.joined, " ")
}

func TestAnotherNumberOfMastersIsDecidedStepByStep(t *testing.T) {
	const long = time.Minute
	for _, row := range []struct {
		members string
		exact   int
		kept    time.Duration
		want    string
	}{
		{"1 1 1 2@d;1+", 2, long, "1 1 1 2@d;1*"},
		{"1 1 1 2@d;1+", 1, long, "1 1 1 2@d;1+"}, // no quorum has it on record
		{"1 1 1 2@d;1+", 3, 2 * time.Second, "1 1 1 2@d;1+"},
		{"1 1 1 2@d;1*", 2, 0, "1 1 1 2@d;1="},
		{"1 1 1 2@d;1*", 1, 0, "1 1 1 2@d;1*"},
		{"1 1 1 1;0-", 3, long, "1 1 1 1;0~"},
		{"1 1 1 1;0-", 2, long, "1 1 1 1;0-"},
		{"1 1 1 1;0-", 4, 2 * time.Second, "1 1 1 1;0-"},
		{"1 1 1 1;0~", 3, 0, "1 1 1 1;0."},
		{"1 1 1 1;0~", 2, 0, "1 1 1 1;0~"},
		// Of two changes at once the addition is dropped.
		{"1 1 1 1;0- 2@e;1+", 3, long, "1 1 1 1;0- 2@e;1."},
		{"1 1 1 1;0~ 2@e;1*", 3, long, "1 1 1 1;0~ 2@e;1."},
		{"1 1 1 1;0. 2@e;1+", 2, long, "1 1 1 1;0. 2@e;1."},
		// Only the last master can go.
		{"1 1 1 1;0- 2@e;1=", 5, long, "1 1 1 1;1= 2@e;1="},
	} {
		if got := resized(row.members, row.exact, row.kept); got != row.want {
			t.Errorf("%s on %d masters for %v: %s, want %s", row.members, row.exact, row.kept, got, row.want)
		}
	}
}

// Whoever decides must have read all that was granted by the number before.
func TestNobodyVotesJustBeforeTheNumberOfMastersChanges(t *testing.T) {
	for members, want := range map[string]State{
		"1 1 1 2@d;1+": Certified, "1 1 1 2@d;1*": Uncertified, "1 1 1 2@d;1=": Certified,
		"1 1 1 1;0-": Certified, "1 1 1 1;0~": Uncertified, "1 1 1 1;0.": Certified,
	} {
		r := changingRoster(members, 4, worldBegan)
		if got := r.judge(Place{}, r.views[Place{}]); got.State != want {
			t.Errorf("%s: %v %s", members, got.State, got.Reason)
		}
	}
}

// Otherwise any N-Q+1 masters of the new number might not know them.
func TestAnotherNumberOfMastersTakesOverTTLsAndTokens(t *testing.T) {
	for members, want := range map[string]bool{"1 1 1 2@d;1=": true, "1 1 1 9@x/r": false} {
		r := changingRoster(members, 2, worldBegan)
		m, ok := r.mend(Place{Master: 2}, worldBegan.Add(time.Second), worldLimits)
		if !ok || m.Kind != EditAll || m.Raise != want || m.Marker.Before != time.Minute || m.Marker.Token != 7 {
			t.Errorf("%s: %v %+v", members, ok, m)
		}
	}
}

// Two markers with different stages of a place are merged to the later one, in any order.
func TestStagesAreMergedToTheLatest(t *testing.T) {
	stages := []string{"2@d;0+", "2@d;0*", "2@d", "2@d;0-", "2@d;0~", "2@d;0.", "2@d;1+", "2@d;1="}
	for i, earlier := range stages {
		for _, later := range stages[i:] {
			for _, got := range [][]string{marker.Together([]string{"1", earlier}, []string{"1", later}), marker.Together([]string{"1", later}, []string{"1", earlier})} {
				if got[1] != later {
					t.Errorf("%s and %s are merged to %s", earlier, later, got[1])
				}
			}
		}
	}
	if got := marker.Together([]string{"1", "1;0-"}, []string{"1", "7@x"}); got[1] != "7@x;0-" {
		t.Errorf("a join and a removal are merged to %s", got[1])
	}
	if got := marker.Together([]string{"1"}, []string{"1", "2@d;1+"}); len(got) != 2 || got[1] != "2@d;1+" {
		t.Errorf("a longer list is merged to %v", got)
	}
}
