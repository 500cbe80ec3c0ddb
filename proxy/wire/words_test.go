package wire

import "testing"

func TestIsWord(t *testing.T) {
	for _, text := range []string{"EX", "ex", "eX", "Ex\x00AT"} {
		if !IsWord([]byte(text), "EX") {
			t.Errorf("%q is not EX", text)
		}
	}
	for _, text := range []string{"", "E", "EXA", " EX", "\x00EX", "%8"} {
		if IsWord([]byte(text), "EX") {
			t.Errorf("%q is EX", text)
		}
	}
}

func TestErrorCode(t *testing.T) {
	for refusal, want := range map[Error]string{"": "", ErrSyntax: "ERR", ErrCrossLock: "CROSSLOCK"} {
		if got := refusal.Code(); got != want {
			t.Errorf("%q: %q, want %q", refusal, got, want)
		}
	}
}
