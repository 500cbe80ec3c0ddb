package rig

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Change replaces a text in a source file. The file has the text once.
type Change struct {
	File     string // from the root of the module, or absolute
	Old, New string
}

// BuildChanged builds the proxy from the working tree with changes, which it does not write there.
func BuildChanged(t testing.TB, out string, changes ...Change) {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{} // by source file
	for _, change := range changes {
		source := change.File
		if !filepath.IsAbs(source) {
			var err error
			if source, err = filepath.Abs(filepath.Join("..", change.File)); err != nil {
				t.Fatal(err)
			}
		}
		now := cmp.Or(replaced[source], source)
		text, err := os.ReadFile(now)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), change.Old); n != 1 {
			t.Fatalf("%s has this %d times instead of once: %s", change.File, n, change.Old)
		}
		if replaced[source] == "" {
			replaced[source] = filepath.Join(dir, fmt.Sprintf("changed%d.go", len(replaced)))
		}
		if err := os.WriteFile(replaced[source], []byte(strings.Replace(string(text), change.Old, change.New, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := BuildProxy(out, "-overlay", list); err != nil {
		t.Fatal(err)
	}
}
