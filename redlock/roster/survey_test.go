package roster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
)

// Survey judges like a Roster that has read all markers.
func TestSurvey(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	clock := time.Duration(now.UnixNano())
	for name, row := range map[string]struct {
		change func(*Found)
		want   State
		reason string
	}{
		"in order":              {func(*Found) {}, Voting, ""},
		"does not tell its run": {func(f *Found) { f.Run = "" }, Voting, ""},
		"away":                  {func(f *Found) { f.Reached = false }, Unreachable, NotConnected},
		"restarted":             {func(f *Found) { f.Run = "another" }, Starting, "it has been restarted"},
		"flushed":               {func(f *Found) { f.Marker = "" }, Starting, "its marker is missing"},
		"a later version":       {func(f *Found) { f.Marker = "redlock-proxy/9 db=0" }, Rejected, "its marker is of a later version of this program, so update this proxy; do not delete the key redlock-proxy:master"},
		"somebody's key":        {func(f *Found) { f.Marker = "hello" }, Rejected, "its key redlock-proxy:master is no marker; delete it if no other program needs it, or correct the address if another proxy listens there"},
		"of another set":        {func(f *Found) { f.Marker = r.another(1, func(m *marker.Marker) { m.Set = "t" }) }, Rejected, "it belongs to another set of masters (t, not s)"},
		"in quarantine": {func(f *Found) {
			f.Marker = r.another(1, func(m *marker.Marker) { m.Set, m.Since, m.Quarantine = "s", clock.Milliseconds(), time.Minute })
		}, Quarantined, "it may have forgotten locks, and votes again when all of them have ended"},
	} {
		found := make([]Found, 3)
		for i := range found {
			found[i] = Found{Server: Server{Name: r.names(i)}, Reached: true, Run: r.names(i), Marker: r.views[Place{Master: i}].text, Clock: clock}
		}
		row.change(&found[1])
		standings := Survey(found, now)
		if st := standings[1]; st.State != row.want || st.Reason != row.reason {
			t.Errorf("%s: %v %q, want %v %q", name, st.State, st.Reason, row.want, row.reason)
		}
		if standings[0].State != Voting || standings[2].State != Voting {
			t.Errorf("%s: the others are %v", name, standings)
		}
	}
}

// A set whose number of masters was never changed must have as many as the list. Otherwise the markers
// say how many there are.
func TestSurveyOfAnotherNumber(t *testing.T) {
	const rejected = "its set has 3 masters by its marker, and %d by the list or by other markers; only a reload changes their number"
	for _, row := range []struct {
		joined string
		listed int
		want   string // V, S or R for each listed master
		reason string // of the first one
	}{
		{"1 1 1", 3, "VVV", ""},
		{"1 2@b 1", 3, "VVV", ""},
		{"1 1 1", 4, "RRRS", fmt.Sprintf(rejected, 4)},
		{"1 1 1", 2, "RR", fmt.Sprintf(rejected, 2)},
		{"1 1 1 2+d", 4, "VVVV", ""},
		{"1 1 1 2+d", 3, "VVV", ""},
		{"1 1 1 4-", 3, "VVV", ""},
		{"1 1 1 4-", 4, "VVVS", ""},
		{"1 1 1 4- 3-", 2, "VV", ""},
	} {
		joined := members.List(strings.Fields(row.joined))
		found := make([]Found, row.listed)
		for i := range found {
			found[i] = Found{Server: Server{Name: string(rune('a' + i))}, Reached: true, Run: "r"}
			if i < len(joined) {
				m := marker.Marker{Set: "s", Member: i + 1, Members: len(joined), Epoch: 9, Joined: joined, Run: "r"}
				found[i].Marker = m.String()
			}
		}
		got, reason := "", ""
		for i, st := range Survey(found, worldBegan) {
			if got += string("USQVR"[st.State]); i == 0 {
				reason = st.Reason
			}
		}
		if got != row.want || reason != row.reason {
			t.Errorf("%s, and %d are listed: %s, %q", row.joined, row.listed, got, reason)
		}
	}
}

// The set of a survey is the one with most markers, however many masters have none.
func TestSurveyFindsTheSet(t *testing.T) {
	for sets, want := range map[string]string{"s - -": "s", "- s -": "s", "s s t": "s", "t s s": "s", "- -": ""} {
		var found []Found
		for i, set := range strings.Fields(sets) {
			m := marker.Marker{Set: set, Member: i + 1, Members: 3, Epoch: 1, Joined: members.New(3), Run: "r"}
			if found = append(found, Found{}); set != "-" {
				found[i].Marker = m.String()
			}
		}
		if got, _ := commonSet(found); got != want {
			t.Errorf("%s: %q", sets, got)
		}
	}
}

// The last master that was looked at need not have heard that the number of masters was changed.
func TestSurveyOfAMasterThatHasNotHeard(t *testing.T) {
	found := make([]Found, 5)
	for i, joined := range []members.List{{"1", "1", "1", "2+d"}, {"1", "1", "1", "2+d"}, {"1", "1", "1"}} {
		m := marker.Marker{Set: "s", Member: i + 1, Members: len(joined), Epoch: 1, Joined: joined, Run: "r"}
		found[i] = Found{Reached: true, Marker: m.String()}
	}
	if standings := Survey(found, worldBegan); standings[0].State != Voting || standings[1].State != Voting {
		t.Errorf("%+v", standings)
	}
}
