package resp

import (
	"slices"
	"testing"
)

func TestElements(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want []string // nil: null array
	}{
		{"*0\r\n", []string{}},
		{"*-1\r\n", nil},
		{"*3\r\n:1\r\n$1\r\na\r\n*1\r\n+x\r\n", []string{":1\r\n", "$1\r\na\r\n", "*1\r\n+x\r\n"}},
		{"~1\r\n_\r\n", []string{"_\r\n"}},
		{">2\r\n+a\r\n+b\r\n", []string{"+a\r\n", "+b\r\n"}},
		{"%1\r\n+a\r\n:1\r\n", []string{"+a\r\n", ":1\r\n"}},
		{"*2\r\n>1\r\n+p\r\n+a\r\n>0\r\n+b\r\n", []string{"+a\r\n", "+b\r\n"}},
		{"|1\r\n+k\r\n+v\r\n|0\r\n*1\r\n:1\r\n", []string{":1\r\n"}},
		{"*2\r\n|1\r\n+k\r\n+v\r\n:1\r\n:2\r\n", []string{"|1\r\n+k\r\n+v\r\n:1\r\n", ":2\r\n"}},
	} {
		got, err := Elements([]byte(c.raw))
		if err != nil || (got == nil) != (c.want == nil) || !slices.EqualFunc(got, c.want, func(g []byte, w string) bool { return string(g) == w }) {
			t.Errorf("%q: %q %v, want %q", c.raw, got, err, c.want)
		}
	}
	for _, raw := range []string{"", "*", "*1", "*1\r\n", "*1\r\n:1\r", "*1\r\n:1\r\n:2\r\n", "*0\r\n:1\r\n", "*-1\r\n:1\r\n", ":1\r\n", "$-1\r\n",
		"|1\r\n+k\r\n", "|0\r\n", "|0\r\n:1\r\n", "*x\r\n", "*1\rx", "*-2\r\n", "*1\r\n?\r\n", "*999999999999999999\r\n:1\r\n"} {
		if got, err := Elements([]byte(raw)); err == nil {
			t.Errorf("%q: %q without error", raw, got)
		}
	}
}
