package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

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

// An inline command with all arguments quoted must be the same command.
func FuzzSplitInline(f *testing.F) {
	for _, input := range proxytest.Inputs() {
		line, _, _ := strings.Cut(strings.TrimPrefix(input.Bytes, "PING\n"), "\n")
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n\x00") {
			return // the decoder never passes such a line
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
