package marker

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/redlock/members"
)

func withMembers(joined ...string) Marker {
	return Marker{Set: "s", Member: 1, Members: len(joined), Epoch: 1, Joined: joined, Run: "r"}
}

// Earlier versions read markers of a set whose number of masters was never changed, so that processes can be replaced one by
// one. They would count wrongly, so they must not read others.
func TestEarlierVersionsReadNoOtherNumber(t *testing.T) {
	for joined, want := range map[string]string{"1,1,1": "redlock-proxy/2 ", "1,2@b/r,1": "redlock-proxy/2 ", "1,1,1,7+d/r": "redlock-proxy/4 ", "1,1,7-": "redlock-proxy/4 "} {
		m := withMembers(strings.Split(joined, ",")...)
		if text := m.String(); !strings.HasPrefix(text, want) {
			t.Errorf("%s", text)
		}
		if got, ok := Parse(m.String()); !ok || !slices.Equal(got.Joined, m.Joined) {
			t.Errorf("%v is read as %v", m.Joined, got.Joined)
		}
		other := strings.NewReplacer("/2 db", "/4 db", "/4 db", "/2 db").Replace(m.String())
		if _, ok := Parse(other); ok {
			t.Errorf("it reads %s", other)
		}
	}
}

func TestMalformedMembersAreRefused(t *testing.T) {
	for entry, want := range map[string]bool{
		"7-": true, "7+d/r": true, "7@d": true, "7+": true,
		"": false, "7": true, "-": false, "+d": false, "07": false, "7-d": false, "x": false, "7;1=": false, "99999999999999999999+d": false,
	} {
		m := withMembers("1", entry, "5-")
		if _, ok := Parse(m.String()); ok != want {
			t.Errorf("%s is accepted: %v", m, ok)
		}
	}
}

func TestMalformedMarkersAreRefused(t *testing.T) {
	const text = "redlock-proxy/2 db=3 set=s member=1/2 epoch=1 joined=1,1 replid=i run=r since=5 quarantine=6 longest=7 before=8 turned=9"
	for _, test := range []struct {
		part, instead string
		want          bool
	}{
		{"", "", true},
		{"since=5", "since=3153599999999", true}, // a hundred years
		{"since=5", "since=3153600000000", false},
		{"longest=7", "longest=3153599999999", true},
		{"longest=7", "longest=3153600000000", false},
		{"redlock-proxy/2", "redlock-proxy/1", false},
		{"redlock-proxy/2", "redlock-proxy/3", false},
		{"redlock-proxy/2", "redlock-proxy/4", false},
		{"set=s", "set=", false},
		{"set=s", "s", false},
		{"db=3", "db=x", false},
		{"db=3", "db=-1", false},
		{"epoch=1", "epoch=99999999999999999999", false},
		{"member=1/2", "member=2/2", true},
		{"member=1/2", "member=0/2", false},
		{"member=1/2", "member=3/2", false},
		{"member=1/2", "member=1/1", false},
		{"member=1/2", "member=1/3", false},
		{" turned=9", "", false},
		{"turned=9", "turned=9 ", false},
		{" run=r", "", false},
	} {
		text := strings.Replace(text, test.part, test.instead, 1)
		if m, ok := Parse(text); ok != test.want {
			t.Errorf("%q is read as %+v: %v", text, m, ok)
		}
	}
}

// Names come from the configuration, and must not look like something else on record.
func TestNamesOnRecordArePlain(t *testing.T) {
	for _, name := range []string{"a;1.", "a,1", "a b", "a/r", "a@b", "a;0-;1+", "7-", "+a"} {
		entry := members.Member{Epoch: 3, Name: name, Run: "r", Added: true}.String()
		m, ok := Parse(withMembers("1", entry).String())
		if !ok {
			t.Fatalf("%s", entry)
		}
		if got := members.Read(m.Joined.Who(1)); got.Epoch != 3 || got.Name != members.PlainName(name) || got.Run != "r" || !got.Added {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range []Marker{withMembers("1", "1", "1"), withMembers("1", "2@b/r", "7+d/r"), withMembers("1", "7-")} {
		f.Add(m.String())
		m.Token = 7
		f.Add(m.String())
	}
	f.Add("redlock-proxy/3 db=0 set=s member=1/2 epoch=1 joined=1,9? replid=- run=r since=0 quarantine=0 longest=0 before=0 turned=0")
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := Parse(text)
		if !ok {
			return
		}
		if len(m.Joined) != m.Members {
			t.Errorf("%q: %d members, and %d are listed", text, m.Members, len(m.Joined))
		}
		if !m.Joined.IsValid() {
			t.Errorf("%q: members that nobody writes", text)
		}
		if again, ok := Parse(m.String()); !ok || again.String() != m.String() {
			t.Errorf("%q is written as %q", text, m)
		}
		if got := m.Joined.Together(m.Joined); !slices.Equal(got, m.Joined) {
			t.Errorf("%v with itself is %v", m.Joined, got)
		}
	})
}
