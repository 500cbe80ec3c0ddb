package resp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// large takes large numbers for remaining times.
func large(m, n int64) bool { return m > 1 && n > 1 }

func TestEquivalent(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want bool
	}{
		{"+OK\r\n", "+OK\r\n", true},
		{"+OK\r\n", "+NO\r\n", false},
		{"+OK\r\n", "$2\r\nOK\r\n", false},
		{"$1\r\na\r\n", "$1\r\na\r\n", true},
		{"$1\r\na\r\n", "$1\r\nb\r\n", false},
		{"$0\r\n\r\n", "$-1\r\n", false},
		{"$-1\r\n", "$-1\r\n", true},
		{"$-1\r\n", "*-1\r\n", true},
		{"_\r\n", "$-1\r\n", true},
		{"_\r\n", ":0\r\n", false},
		{"*0\r\n", "*-1\r\n", false},
		{":0\r\n", ":0\r\n", true},
		{":0\r\n", ":1\r\n", false},
		{":1\r\n", ":2\r\n", false},
		{":2\r\n", ":30000\r\n", true},
		{":-1\r\n", ":-1\r\n", true},
		{":-1\r\n", ":-2\r\n", false},
		{":-5\r\n", ":5\r\n", false},
		{"-ERR no\r\n", "-ERR other\r\n", true},
		{"-ERR no\r\n", "-WRONGTYPE no\r\n", false},
		{"-ERR\r\n", "-ERR x\r\n", true},
		{"-ERR no\r\n", "!6\r\nERR no\r\n", true},
		{"!6\r\nERR no\r\n", "!7\r\nBAD one\r\n", false},
		{"-ERR no\r\n", "+ERR no\r\n", false},
		{"-ERR no\r\n", "_\r\n", false},
		{"*2\r\n:1\r\n:5\r\n", "*2\r\n:1\r\n:6\r\n", true},
		{"*2\r\n:1\r\n:5\r\n", "*2\r\n:0\r\n:5\r\n", false},
		{"*2\r\n:1\r\n:5\r\n", "*1\r\n:1\r\n", false},
		{"*2\r\n$1\r\na\r\n:5\r\n", "*2\r\n$1\r\na\r\n:6\r\n", true},
		{"*1\r\n*1\r\n$-1\r\n", "*1\r\n*1\r\n*-1\r\n", true},
		{"*1\r\n-ERR a\r\n", "*1\r\n-ERR b\r\n", true},
		{"*2\r\n+a\r\n+b\r\n", "*2\r\n+b\r\n+a\r\n", false},
		{"~2\r\n+a\r\n+b\r\n", "~2\r\n+b\r\n+a\r\n", true},
		{"~2\r\n+a\r\n+b\r\n", "~2\r\n+b\r\n+c\r\n", false},
		{"~1\r\n+a\r\n", "*1\r\n+a\r\n", false},
		{"%2\r\n+a\r\n:1\r\n+b\r\n:9\r\n", "%2\r\n+b\r\n:8\r\n+a\r\n:1\r\n", true},
		{"%2\r\n+a\r\n:1\r\n+b\r\n:9\r\n", "%2\r\n+b\r\n:1\r\n+a\r\n:9\r\n", false},
		{",1.5\r\n", ",1.5\r\n", true},
		{",1.5\r\n", ",2.5\r\n", false},
		{"#t\r\n", "#t\r\n", true},
		{"#t\r\n", "#f\r\n", false},
		{"(123\r\n", "(123\r\n", true},
		{"(123\r\n", "(124\r\n", false},
		{"=5\r\ntxt:a\r\n", "=5\r\ntxt:a\r\n", true},
		{"=5\r\ntxt:a\r\n", "=5\r\ntxt:b\r\n", false},
		{"|1\r\n+k\r\n+v\r\n:1\r\n", ":1\r\n", true},
		{"|1\r\n+k\r\n+v\r\n:1\r\n", "|1\r\n+k\r\n+w\r\n:1\r\n", true},
		{"|1\r\n+k\r\n+v\r\n:1\r\n", ":0\r\n", false},
		{"", "", true},
		{"", ":1\r\n", false},
	} {
		if got := Equivalent([]byte(row.a), []byte(row.b), large); got != row.want {
			t.Errorf("%q and %q: %v", row.a, row.b, got)
		}
		if got := Equivalent([]byte(row.b), []byte(row.a), large); got != row.want {
			t.Errorf("%q and %q: %v", row.b, row.a, got)
		}
	}
}

// Numbers must be equal unless the caller knows better.
func TestNumbersThatDiffer(t *testing.T) {
	for _, reply := range []string{":%d\r\n", "*2\r\n:1\r\n:%d\r\n"} {
		a, b := fmt.Appendf(nil, reply, 30), fmt.Appendf(nil, reply, 3)
		if Equivalent(a, b, nil) {
			t.Errorf("%q and %q", a, b)
		}
	}
}

func FuzzEquivalent(f *testing.F) {
	f.Add([]byte("*2\r\n:1\r\n%1\r\n+a\r\n~1\r\n$1\r\nb\r\n"), []byte("|1\r\n+k\r\n+v\r\n>1\r\n_\r\n"))
	f.Add([]byte("!6\r\nERR no\r\n"), []byte("-"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		CannotServe(a)
		if Equivalent(a, b, large) != Equivalent(b, a, large) {
			t.Error("not symmetric")
		}
		if !Equivalent(a, bytes.Clone(a), nil) {
			t.Error("a reply differs from itself")
		}
	})
}

// A script may answer with as many levels as Lua's stack has. To compare them must
// not take the square of their number.
func TestEquivalentDeepReplies(t *testing.T) {
	deep := func(leaf string) []byte {
		return []byte(strings.Repeat("*1\r\n", 7995) + leaf)
	}
	if !Equivalent(deep(":5\r\n"), deep(":5\r\n"), large) {
		t.Error("equal replies differ")
	}
	if Equivalent(deep(":5\r\n"), deep(":6\r\n"), large) {
		t.Error("what is not looked into counts as equal")
	}
	shallow := func(leaf string) []byte { return []byte(strings.Repeat("*1\r\n", 100) + leaf) }
	if !Equivalent(shallow(":5\r\n"), shallow(":6\r\n"), large) {
		t.Error("what is looked into differs")
	}
}
