package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Error is everything that is wrong with a configuration, so that one
// run tells all of it. It never holds a password.
type Error []Problem

// Problem is one mistake and where it stands.
type Problem struct {
	file string
	line int    // 0: the file as a whole
	key  string // as a path, masters[2]; empty: the file as a whole
	text string // what is wrong and what is allowed
}

// Error has one problem a line: file:line: key: what is wrong.
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

// quoteValue shows a wrong value where that cannot tell a secret: a text with
// an @ may be a URL with its password, put at the wrong place.
func quoteValue(text string) string {
	if len(text) > 60 || strings.Contains(text, "@") {
		return "the value"
	}
	return fmt.Sprintf("%q", text)
}

// quoteKey shows an unknown key only if it looks like one: a forgotten space
// makes "password:secret" a key.
func quoteKey(key string) string {
	if !plainKey.MatchString(key) {
		return "a key"
	}
	return fmt.Sprintf("%q", key)
}
