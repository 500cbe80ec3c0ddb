package script

import (
	"bytes"
	"regexp"
)

// A script can reach beyond the keys that it names. It could move a lock out of sight,
// or change the marker that decides who votes. Scripts whose text shows that are
// refused before they run. A script that assembles such a name at run time can only be
// stopped by the access rights of the proxy's user on the masters.

const (
	reachesMarker   = "a script on lock keys must not name the proxy's own keys on its lock masters"
	reachesDatabase = "a script on lock keys must not reach into another database"
)

var (
	// callsElsewhere finds a call of a command that always reaches another database.
	callsElsewhere = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)(?:select|move|swapdb|flushdb|flushall)\b`)
	callsCopy      = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)copy\b`)
	saysDatabase   = regexp.MustCompile(`(?i)(?:['"]|\[\[)db\b`)
)

// Reach returns the error for a script that reaches too far, without the leading "-".
// It is empty if the text shows nothing of the kind.
func Reach(text []byte) string {
	switch {
	case bytes.Contains(text, []byte("redlock-proxy:")):
		return reachesMarker
	case callsElsewhere.Match(text), callsCopy.Match(text) && saysDatabase.Match(text):
		return reachesDatabase
	}
	return ""
}
