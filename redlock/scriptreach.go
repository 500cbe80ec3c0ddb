package redlock

import (
	"bytes"
	"regexp"
	"strings"
)

// Scripts reach further than their keys. What would take a lock out of sight, or
// the record by which masters vote, is refused before anybody runs it, as far as
// a script's text shows it; what it puts together only rights can keep from it.

const (
	reachesMarker   = "-ERR a script on lock keys must not name the proxy's own keys on its lock masters\r\n"
	reachesDatabase = "-ERR a script on lock keys must not reach into another database\r\n"
)

var (
	// callsElsewhere is a call of a command that always does.
	callsElsewhere = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)(?:select|move|swapdb|flushdb|flushall)\b`)
	callsCopy      = regexp.MustCompile(`(?i)call\s*\(?\s*(?:['"]|\[\[)copy\b`)
	saysDatabase   = regexp.MustCompile(`(?i)(?:['"]|\[\[)db\b`)
)

// reach is the error reply to a script that reaches too far; empty: it does not.
func reach(text []byte) string {
	switch {
	case bytes.Contains(text, []byte("redlock-proxy:")):
		return reachesMarker
	case callsElsewhere.Match(text), callsCopy.Match(text) && saysDatabase.Match(text):
		return reachesDatabase
	}
	return ""
}

// tooFar is the error reply to a request one of whose scripts reaches too far.
func (l *Locker) tooFar(r *RunRequest) string {
	for _, text := range r.Scripts {
		if refusal := l.scripts.of(text).tooFar; refusal != "" {
			return refusal
		}
	}
	for _, command := range r.Transaction {
		if refusal := l.evalTooFar(command); refusal != "" {
			return refusal
		}
	}
	return l.evalTooFar(r.Args)
}

func (l *Locker) evalTooFar(command [][]byte) string {
	if len(command) < 3 || !isScriptCommand(command[0]) || strings.HasPrefix(strings.ToUpper(string(command[0])), "EVALSHA") {
		return ""
	}
	return l.scripts.of(command[1]).tooFar
}
