package script

import (
	"bytes"
	"regexp"
)

// Scripts reach further than their keys. What would take a lock out of sight, or
// the record by which masters vote, is refused before anybody runs it, as far as
// a script's text shows it; what it puts together only rights can keep from it.

const (
	reachesMarker   = "a script on lock keys must not name the proxy's own keys on its lock masters"
	reachesDatabase = "a script on lock keys must not reach into another database"
)

var (
	// callsElsewhere is a call of a command that always does.
	callsElsewhere = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)(?:select|move|swapdb|flushdb|flushall)\b`)
	callsCopy      = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)copy\b`)
	saysDatabase   = regexp.MustCompile(`(?i)(?:['"]|\[\[)db\b`)
)

// Reach is the error with which a script is refused that reaches too far, without
// the sign in front; empty: it does not.
func Reach(text []byte) string {
	switch {
	case bytes.Contains(text, []byte("redlock-proxy:")):
		return reachesMarker
	case callsElsewhere.Match(text), callsCopy.Match(text) && saysDatabase.Match(text):
		return reachesDatabase
	}
	return ""
}
