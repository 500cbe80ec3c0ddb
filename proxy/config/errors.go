package config

import (
	"cmp"
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

// inRedis has names of redis.conf for keys with another name.
var inRedis = map[string]string{
	"port": "listen", "bind": "listen", "tls-port": "tls.listen", "requirepass": "auth.password", "maxclients": "limits.clients",
}

// closest returns the first name that a mistyped one may stand for, or "". It is the name of a key of Redis, or one with
// a few other letters or two that are swapped, or with the mistyped one as a word (cert_file for cert), or below
// another key (limits.clients for clients).
func closest(typed string, names []string) (meant string) {
	typed = strings.ToLower(typed)
	least := min(3, (len(typed)+1)/2)
	for _, name := range names {
		last := name[strings.LastIndexByte(name, '.')+1:]
		away := min(distance(typed, name), distance(typed, last))
		words := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("_.[]", c) })
		if last == typed {
			away = 0
		} else if slices.Contains(words, typed) || swapped(typed, name) || swapped(typed, last) {
			away = min(away, 1)
		}
		if away < least {
			least, meant = away, name
		}
	}
	return cmp.Or(inRedis[typed], meant)
}

// swapped tells whether two neighbouring letters make the difference.
func swapped(a, b string) bool {
	for i := range len(a) - 1 {
		if a[:i]+a[i+1:i+2]+a[i:i+1]+a[i+2:] == b {
			return true
		}
	}
	return false
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
