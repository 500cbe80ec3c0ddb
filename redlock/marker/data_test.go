package marker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/members"
)

// The questions are:
//
//	parse since=5 since=-5     whether a marker is one in which the first is replaced by the second
//	joined 1 7+d/r 5-          how a marker of these members begins, and what it says of the masters that count
//	name a;1.                  how this name stands on record
//	unreadable "TEXT"          what people are told of a text that is no marker
//	founded +8784h             when a set began whose id says so, apart from now; founded id=abc
//	token "TEXT"               what is left of a text without its token, and the token
func TestData(t *testing.T) { datatest.Run(t, ask) }

const text = "redlock-proxy/2 db=3 set=s member=1/2 epoch=1 joined=1,1 replid=i run=r since=5 quarantine=6 longest=7 before=8 turned=9"

func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	words := strings.Fields(rest)
	now := time.Unix(1_800_000_000, 0)
	unquoted := func() string {
		text, err := strconv.Unquote(rest)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	switch rule {
	case "parse":
		part, instead, _ := strings.Cut(rest, " => ")
		m, ok := Parse(strings.Replace(text, strings.ReplaceAll(part, "_", " "), strings.ReplaceAll(instead, "_", " "), 1))
		return fmt.Sprint(ok, " ", ok && m.String() == strings.Replace(text, part, instead, 1))
	case "joined":
		for i := range words {
			words[i] = strings.Trim(words[i], `"`)
		}
		m := withMembers(words...)
		version, _, _ := strings.Cut(m.String(), " ")
		again, ok := Parse(m.String())
		if !ok || again.String() != m.String() {
			return "it is no marker"
		}
		other := strings.NewReplacer("/2 db", "/4 db", "/4 db", "/2 db").Replace(m.String())
		if _, ok := Parse(other); ok {
			t.Errorf("it reads %s", other)
		}
		facts, _ := Read(m.String(), now)
		return fmt.Sprintf("%s, %d masters", version, facts.Members)
	case "name":
		m, _ := Parse(withMembers("1", members.Member{Epoch: 3, Name: rest, Run: "r", Added: true}.String()).String())
		return fmt.Sprintf("%+v", members.Read(m.Joined.Who(1)))
	case "unreadable":
		return fmt.Sprintf("%s; of a later version: %v", Unreadable(unquoted()), IsLater(unquoted()))
	case "founded":
		m := withMembers("1")
		if id, isID := strings.CutPrefix(rest, "id="); isID {
			m.Set = id
		} else {
			past, _ := time.ParseDuration(rest)
			m.Set = NewSetID(now.Add(past), time.Second, 7)
		}
		facts, _ := Read(m.String(), now)
		if facts.Founded.IsZero() {
			return "it does not say"
		}
		return facts.Founded.Sub(now).String()
	case "token":
		left, token := CutToken(unquoted())
		if bytes, number := CutToken([]byte(unquoted())); string(bytes) != left || number != token {
			t.Errorf("%s is read otherwise as bytes", rest)
		}
		m, _ := Parse(text + unquoted())
		return fmt.Sprintf("%q %d, in a marker %d", left, token, cmp.Or(m.Token, 0))
	}
	t.Fatalf("no such question: %s", question)
	return ""
}

func withMembers(joined ...string) Marker {
	return Marker{Set: "s", Member: 1, Members: len(joined), Epoch: 1, Joined: joined, Run: "r"}
}

func TestATokenIsCutWithoutMemory(t *testing.T) {
	if allocs := testing.AllocsPerRun(10, func() { CutToken([]byte(" token=7")) }); allocs > 0 {
		t.Errorf("each batch costs %v allocations", allocs)
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
