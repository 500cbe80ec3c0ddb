package proxy

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func TestSplitInline(t *testing.T) {
	for _, c := range inlineLines {
		for _, end := range []string{"\n", "\r\n"} {
			got, err := splitInline(nil, []byte(c.text+end))
			if c.args == nil {
				if err != (protocolError{text: errorQuotes}) || len(got) > 0 {
					t.Errorf("%q: %q, error %v, want %v", c.text+end, got, err, errorQuotes)
				}
			} else if err != nil || !sameArgs(got, c.args) {
				t.Errorf("%q: %q, error %v, want %q", c.text+end, got, err, c.args)
			}
		}
	}
}

func TestSplitInlineCopiesOnlyWhatIsQuoted(t *testing.T) {
	line := []byte("EVAL plain 'quoted' \"other\" last\r\n")
	args, err := splitInline(nil, line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	if !sameArgs(args, []string{"\x00\x00\x00\x00", "\x00\x00\x00\x00\x00", "quoted", "other", "\x00\x00\x00\x00"}) {
		t.Errorf("after the line was overwritten: %q", args)
	}
}

// An inline command, its arguments quoted, is the same command.
func FuzzSplitInline(f *testing.F) {
	for _, line := range inlineLines {
		f.Add([]byte(line.text))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n\x00") {
			return // the guard hands on none of these
		}
		args, err := splitInline(nil, append(bytes.Clone(line), '\n'))
		if err != nil {
			return
		}
		var quoted []byte
		for _, arg := range args {
			quoted = append(quoted, ' ', '"')
			for _, c := range arg {
				quoted = fmt.Appendf(quoted, `\x%02x`, c)
			}
			quoted = append(quoted, '"')
		}
		again, err := splitInline(nil, append(quoted, '\n'))
		if err != nil || !slices.EqualFunc(args, again, bytes.Equal) {
			t.Errorf("%q became %q (%v)", args, again, err)
		}
	})
}
