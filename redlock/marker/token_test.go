package marker

import "testing"

func TestCutToken(t *testing.T) {
	text := Marker{Set: "s", Member: 1, Members: 1, Joined: []string{"1"}, Run: "r", Turned: 123}.String()
	for given, want := range map[string]struct {
		rest  string
		token int64
	}{
		"":                                 {"", 0},
		text:                               {text, 0},
		text + " token=1800000000001":      {text, 1800000000001},
		text + " token=9007199254740991":   {text, MostToken},
		text + " token=":                   {text + " token=", 0},
		text + " token=1x":                 {text + " token=1x", 0},
		text + " token=123456789012345678": {text + " token=123456789012345678", 0},
		text + "token=1":                   {text + "token=1", 0},
		" token=7":                         {"", 7},
		"7":                                {"7", 0},
	} {
		if rest, token := CutToken(given); rest != want.rest || token != want.token {
			t.Errorf("%q: %q and %d", given, rest, token)
		}
		if rest, token := CutToken([]byte(given)); string(rest) != want.rest || token != want.token {
			t.Errorf("%q as bytes: %q and %d", given, rest, token)
		}
	}
	if allocs := testing.AllocsPerRun(10, func() { CutToken([]byte(" token=7")) }); allocs > 0 {
		t.Errorf("each batch costs %v allocations", allocs)
	}
}

func TestMarkersKeepTheToken(t *testing.T) {
	m := Marker{Set: "s", Member: 1, Members: 1, Joined: []string{"1"}, Run: "r", Token: 42}
	if got, ok := Parse(m.String()); !ok || got.Token != 42 || got.String() != m.String() {
		t.Errorf("%v: %v", ok, got)
	}
}
