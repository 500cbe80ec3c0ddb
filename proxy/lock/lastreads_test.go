package lock

import (
	"fmt"
	"strings"
	"testing"
)

func TestLastReadIsForgottenOnceUsed(t *testing.T) {
	var r LastReads
	key, value := []byte("k"), []byte("v")
	r.Remember(2, key, value)
	key[0], value[0] = 'x', 'x' // the caller's buffer is used again
	if got := r.Take(0, []byte("k")); got != nil {
		t.Errorf("another database's value %q", got)
	}
	if got := r.Take(2, []byte("k")); string(got) != "v" {
		t.Errorf("took %q", got)
	}
	if got := r.Take(2, []byte("k")); got != nil {
		t.Errorf("took %q a second time", got)
	}
}

// A read replaces the one before, and an entry that was given up is found under no key.
func TestLastReadIsTheNewest(t *testing.T) {
	var r LastReads
	for _, read := range [][2]string{{"k", "old"}, {"", "v"}, {"k", "new"}} {
		r.Remember(0, []byte(read[0]), []byte(read[1]))
	}
	for _, want := range [][2]string{{"k", "new"}, {"k", ""}, {"", "v"}} {
		if got := r.Take(0, []byte(want[0])); string(got) != want[1] {
			t.Errorf("%q: took %q, want %q", want[0], got, want[1])
		}
	}
}

func TestLastReadOfEmptyAndAbsent(t *testing.T) {
	var r LastReads
	r.Remember(0, []byte("k"), []byte{})
	if got := r.Take(0, []byte("k")); got == nil || len(got) != 0 {
		t.Errorf("an empty value came back as %v", got)
	}
	r.Remember(0, []byte("k"), []byte("v"))
	r.Remember(0, []byte("k"), nil)
	if got := r.Take(0, []byte("k")); got != nil {
		t.Errorf("a key seen absent came back as %q", got)
	}
	var none *LastReads
	none.Remember(0, []byte("k"), []byte("v"))
	if got := none.Take(0, []byte("k")); got != nil {
		t.Errorf("nothing remembers %q", got)
	}
}

func TestLastReadIsBounded(t *testing.T) {
	var r LastReads
	for round := range 3 {
		for i := range 10 * lastReads {
			r.Remember(0, fmt.Append(nil, "k", i), fmt.Append(nil, round, " ", i))
		}
	}
	if len(r.reads) != lastReads {
		t.Errorf("%d entries, want %d", len(r.reads), lastReads)
	}
	for i := range lastReads {
		n := 10*lastReads - 1 - i
		if got, want := string(r.Take(0, fmt.Append(nil, "k", n))), fmt.Sprint(2, " ", n); got != want {
			t.Errorf("k%d: %q, want %q", n, got, want)
		}
	}
	longest := strings.Repeat("v", lastReadMaxBytes-1)
	r.Remember(0, []byte("k"), []byte(longest))
	if got := r.Take(0, []byte("k")); string(got) != longest {
		t.Errorf("of a value of %d bytes, %d are known", len(longest), len(got))
	}
	r.Remember(0, []byte("k"), []byte("v"))
	r.Remember(0, []byte("k"), []byte(strings.Repeat("v", lastReadMaxBytes)))
	if got := r.Take(0, []byte("k")); got != nil {
		t.Errorf("a value of %d bytes is kept, or an outdated one", len(got))
	}
}
