package config

import (
	"fmt"
	"regexp"
	"slices"
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

// plainKey is what a key looks like. A forgotten space makes "password:secret" a key.
var plainKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// quoteValue quotes a wrong value unless it may contain a secret. A text with an @ may be
// a URL with its password, written at the wrong place.
func quoteValue(text string) string {
	if len(text) > 60 || strings.Contains(text, "@") {
		return "the value"
	}
	return fmt.Sprintf("%q", text)
}

// closest returns the first name that a mistyped one may stand for, or "". It is one with a
// few other letters, or with the mistyped one as a word (cert_file for cert), or below
// another key (limits.clients for clients).
func closest(typed string, names []string) (meant string) {
	least := min(3, (len(typed)+1)/2)
	for _, name := range names {
		away := distance(typed, name)
		words := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("_.[]", c) })
		if strings.HasSuffix(name, "."+typed) {
			away = 0
		} else if slices.Contains(words, typed) {
			away = 1
		}
		if away < least {
			least, meant = away, name
		}
	}
	return meant
}

// distance is the number of letters to add, to drop or to replace between two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // from the part of a so far to each part of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0]++
		for j := range len(b) {
			same := before
			if a[i] != b[j] {
				same++
			}
			before, row[j+1] = row[j+1], min(same, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
