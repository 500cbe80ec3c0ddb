package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build compiles the tests of these packages with all mutants in them. It returns the
// path of a test binary for each package.
func build(woven map[string]string, packages []string, dir string) (map[string]string, error) {
	replaced := map[string]string{}
	for path, text := range woven {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		replaced[absolute] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		if err := os.WriteFile(replaced[absolute], []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	for _, p := range packages {
		binaries[p] = filepath.Join(dir, strings.ReplaceAll(p, "/", "-")+".test")
		command := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binaries[p], "./"+p)
		if output, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the tests of %s with mutants: %w\n%s", p, err, output)
		}
	}
	return binaries, nil
}
