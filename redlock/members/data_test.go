package members

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
)

// A question names a function and gives it records, between which are commas:
//
//	next 1 1 1 2@d;1+ -> place 3: 1 1 1 2@d;1*, held votes
//	together 1 2@d;1+, 1 2@d;1= -> 1 2@d;1=
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
	case "staged":
		return fmt.Sprint(l.IsStaged())
	case "counting":
		return fmt.Sprint(l.Counting())
	case "changing":
		if i, is := l.Changing(); is {
			return fmt.Sprint("place ", i)
		}
		return "no"
	case "frozen":
		return fmt.Sprint(l.IsFrozen())
	case "proposed":
		return fmt.Sprint(l.IsProposed())
	case "fits":
		return both(t, fmt.Sprint(l.Fits(other)), fmt.Sprint(other.Fits(l)))
	case "same-stages":
		return both(t, fmt.Sprint(l.SameStages(other)), fmt.Sprint(other.SameStages(l)))
	case "together":
		return both(t, text(l.Together(other)), text(other.Together(l)))
	case "add":
		return text(l.Add(Member{Epoch: 9, Name: "e", Run: "re"}))
	case "remove":
		return text(l.Remove())
	case "withdraw":
		return text(l.Withdraw())
	case "with":
		return text(l.With(len(l)-1, "9@e/re"))
	case "next":
		return next(l)
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

func next(l List) string {
	d, ok := l.Next()
	if !ok {
		return "none"
	}
	words := fmt.Sprintf("place %d: %s", d.Place, text(d.Members))
	if d.Held {
		words += ", held"
	}
	if d.Votes {
		words += ", votes"
	}
	return words
}

// Two records with different stages of a place are merged to the later one, in any order.
func TestStagesAreMergedToTheLatest(t *testing.T) {
	stages := []string{"2@d;0+", "2@d;0*", "2@d", "2@d;0-", "2@d;0~", "2@d;0.", "2@d;1+", "2@d;1="}
	for i, earlier := range stages {
		for _, later := range stages[i:] {
			for _, got := range []List{(List{"1", earlier}).Together(List{"1", later}), (List{"1", later}).Together(List{"1", earlier})} {
				if got[1] != later {
					t.Errorf("%s and %s are merged to %s", earlier, later, got[1])
				}
			}
		}
	}
}

// What a change does to a record is never undone by the record before it.
func FuzzNext(f *testing.F) {
	for _, record := range []string{"1 1 1 2@d;1+", "1 1 1 1;0~ 2@e;1*", "1 1;1. 2@e;1="} {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		l := List(strings.Fields(record))
		d, ok := l.Next()
		if !l.IsValid() || !ok {
			return
		}
		if !d.Members.IsValid() && d.Members.Stage(d.Place).Round <= mostRounds {
			t.Errorf("%v is followed by %v", l, d.Members)
		}
		if got := both(t, text(l.Together(d.Members)), text(d.Members.Together(l))); got != text(d.Members) || slices.Equal(l, d.Members) {
			t.Errorf("%v and %v are merged to %s", l, d.Members, got)
		}
	})
}
