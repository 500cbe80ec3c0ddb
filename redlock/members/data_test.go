package members

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
)

// A question names a function and gives it records, between which are commas:
//
//	together 1 2@d, 1 3@e -> 1 3@e
//	member 3|a server|77c0de -> 3@a_server/77c0de
func TestData(t *testing.T) { datatest.Run(t, ask) }

func ask(t *testing.T, question string) string {
	name, rest, _ := strings.Cut(question, " ")
	first, second, _ := strings.Cut(rest, ", ")
	l, other := List(strings.Fields(first)), List(strings.Fields(second))
	switch name {
	case "member":
		words := strings.Split(rest, "|")
		return Member{Epoch: Read(words[0]).Epoch, Name: words[1], Run: words[2]}.String()
	case "valid":
		return fmt.Sprint(l.IsValid())
	case "resized":
		return fmt.Sprint(l.IsResized())
	case "counting":
		return fmt.Sprint(l.Counting())
	case "has-last":
		return fmt.Sprint(l.Has(len(l)-1), l.Has(len(l)))
	case "fits":
		return both(t, fmt.Sprint(l.Fits(other)), fmt.Sprint(other.Fits(l)))
	case "together":
		return both(t, text(l.Together(other)), text(other.Together(l)))
	case "add":
		return text(l.With(len(l), Member{Epoch: 9, Name: "e", Run: "re"}))
	case "remove":
		return text(l.With(len(l)-1, Member{Epoch: 9, Removed: true}))
	case "with":
		return text(l.With(len(l)-1, Member{Epoch: 9, Name: "e", Run: "re"}))
	}
	t.Fatalf("no such function: %s", question)
	return ""
}

// both is one answer that does not depend on the order of two records.
func both(t *testing.T, one, other string) string {
	t.Helper()
	if one != other {
		t.Errorf("it is %s in one order, and %s in the other", one, other)
	}
	return one
}

func text(l List) string { return strings.Join(l, " ") }

// What is on record is read as it was written, and is never undone by the record before it.
func FuzzRecord(f *testing.F) {
	for _, record := range []string{"1 1 1 2+d", "1 1 1 4- 2+e/r", "1 3@x/r 1"} {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		l := List(strings.Fields(record))
		if !l.IsValid() || len(l) == 0 {
			return
		}
		for i, who := range l {
			if m := Read(who); m.String() != who {
				t.Errorf("%s is read as %+v", who, m)
			}
			m := Read(who)
			if m.Epoch++; m.Epoch < 0 {
				return
			}
			for _, change := range []Member{{Epoch: m.Epoch, Name: "e", Run: "re"}, {Epoch: m.Epoch, Removed: true}} {
				next := l.With(i, change)
				if !next.IsValid() {
					t.Errorf("%v is followed by %v", l, next)
				}
				if got := both(t, text(l.Together(next)), text(next.Together(l))); got != text(next) {
					t.Errorf("%v and %v are merged to %s", l, next, got)
				}
			}
		}
	})
}
