package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// survivorsPath holds a file for each package: its mutants that no test needs to catch.
const survivorsPath = "integration/mutants/survivors"

// readSurvivors returns the reason of each accepted survivor, by its key. In a file a
// reason is one or more lines that begin with "#". It holds for the keys that follow, up
// to an empty line.
func readSurvivors() (map[string]string, error) {
	accepted := map[string]string{}
	files, err := filepath.Glob(survivorsPath + "/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		of, err := parseSurvivors(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		maps.Copy(accepted, of)
	}
	return accepted, err
}

func parseSurvivors(text string) (map[string]string, error) {
	accepted := map[string]string{}
	reason, inKeys := "", false
	for n, line := range slices.Collect(strings.Lines(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			reason, inKeys = "", false
		case strings.HasPrefix(line, "#"):
			if inKeys {
				return nil, fmt.Errorf("line %d: an empty line must stand before the next reason", n+1)
			}
			reason = strings.TrimSpace(reason + " " + strings.TrimLeft(line, "# "))
		case reason == "":
			return nil, fmt.Errorf("line %d: this survivor has no reason: %s", n+1, line)
		case accepted[line] != "":
			return nil, fmt.Errorf("line %d: this survivor stands here twice: %s", n+1, line)
		default:
			accepted[line], inKeys = reason, true
		}
	}
	return accepted, nil
}
