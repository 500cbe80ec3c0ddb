package rig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A Change replaces a text in a source file. The file has the text once.
type Change struct {
	File     string // from the root of the module
	Old, New string
}

// BuildChanged builds the proxy from the working tree with a change, which it does not write there.
func BuildChanged(t testing.TB, out string, change Change) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", change.File))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), change.Old); n != 1 {
		t.Fatalf("%s has this %d times instead of once: %s", change.File, n, change.Old)
	}
	dir := t.TempDir()
	changed, list := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		changed: strings.Replace(string(text), change.Old, change.New, 1),
		list:    string(overlay),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := BuildProxy(out, "-overlay", list); err != nil {
		t.Fatal(err)
	}
}
