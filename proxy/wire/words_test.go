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
