package resp

import (
	"math"
	"strconv"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 9, 10, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1} {
		if got, ok := ParseDecimal([]byte(strconv.FormatInt(n, 10))); !ok || got != n {
			t.Errorf("%d is read as %d, %v", n, got, ok)
		}
	}
	for _, text := range []string{"", "-", "+1", "01", "00", "-0", "-01", " 1", "1 ", "1.0", "1e3", "0x1", "1\x00", "--1", "1_0", "/", ":",
		"9223372036854775808", "-9223372036854775809", "99999999999999999999", "18446744073709551617", "10000000000000000000000"} {
		if got, ok := ParseDecimal([]byte(text)); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
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
