package proxy

import "testing"

func TestLowestVersion(t *testing.T) {
	for _, row := range []struct {
		versions map[string]string
		want     string
	}{
		{nil, ""},
		{map[string]string{"a": "7.0.15"}, "7.0.15"},
		{map[string]string{"a": "7.0.15", "b": "7.0.9", "c": "10.0.0"}, "7.0.9"},
		{map[string]string{"a": "8.0", "b": "8.0.1"}, "8.0"},
		{map[string]string{"a": "255.255.255", "b": "7.2.4-rc1"}, "7.2.4-rc1"},
	} {
		if got := lowestVersion(row.versions); got != row.want {
			t.Errorf("%v: %s", row.versions, got)
		}
	}
}
