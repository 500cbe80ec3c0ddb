package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Error has all mistakes in a configuration, so that one run reports all of them. It
// never contains a password.
type Error []Problem

// Problem is one mistake and its place.
type Problem struct {
	file string
	line int    // 0: the file as a whole
	key  string // as a path, masters[2]; empty: the file as a whole
	text string // what is wrong and what is allowed
}

// Error returns one line for each problem: file:line: key: what is wrong.
func (e Error) Error() string {
	lines := make([]string, len(e))
	for i, problem := range e {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p Problem) String() string {
	where := p.file
	if p.line > 0 {
		where = fmt.Sprintf("%s:%d", p.file, p.line)
	}
	if p.key != "" {
		where += ": " + p.key
	}
	return where + ": " + p.text
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// quoteValue quotes a wrong value unless it may contain a secret. A text with an @ may be
// a URL with its password, written at the wrong place.
func quoteValue(text string) string {
	if len(text) > 60 || strings.Contains(text, "@") {
		return "the value"
	}
	return fmt.Sprintf("%q", text)
}

// quoteKey quotes an unknown key only if it looks like a key. A forgotten space makes
// "password:secret" a key.
func quoteKey(key string) string {
	if !plainKey.MatchString(key) {
		return "a key"
	}
	return fmt.Sprintf("%q", key)
}
