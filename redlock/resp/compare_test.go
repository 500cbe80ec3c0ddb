package resp

import (
	"bytes"
	"strconv"
	"testing"
)

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

func FuzzParseDecimal(f *testing.F) {
	f.Add([]byte("-12"))
	f.Add([]byte("9223372036854775808"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, ok := ParseDecimal(text)
		want, err := strconv.ParseInt(string(text), 10, 64)
		strict := err == nil && strconv.FormatInt(want, 10) == string(text)
		if ok != strict || ok && n != want {
			t.Errorf("%q is read as %d, %v; want %d, %v", text, n, ok, want, strict)
		}
	})
}
