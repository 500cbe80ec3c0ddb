package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// survivorsPath is the list of mutants that no test needs to catch.
const survivorsPath = "integration/mutants/survivors.txt"

// readSurvivors returns the reason of each accepted survivor, by its key. In the file a
// reason is one or more lines that begin with "#". It holds for the keys that follow, up
// to an empty line.
func readSurvivors() (map[string]string, error) {
	text, err := os.ReadFile(survivorsPath)
	if err != nil {
		return nil, err
	}
	return parseSurvivors(string(text))
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
				return nil, fmt.Errorf("%s:%d: an empty line must stand before the next reason", survivorsPath, n+1)
			}
			reason = strings.TrimSpace(reason + " " + strings.TrimLeft(line, "# "))
		case reason == "":
			return nil, fmt.Errorf("%s:%d: this survivor has no reason: %s", survivorsPath, n+1, line)
		case accepted[line] != "":
			return nil, fmt.Errorf("%s:%d: this survivor stands here twice: %s", survivorsPath, n+1, line)
		default:
			accepted[line], inKeys = reason, true
		}
	}
	return accepted, nil
}
