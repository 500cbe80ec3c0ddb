package unruled

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock/resp"
)

// A Found is a pattern of keys that are used as locks.
type Found struct {
	Match       string // a Redis glob over the whole key
	DB          int    // of the latest use
	Uses        int64  // how often a lock was taken and given back
	First, Last time.Time
	Shape       string // what the first use looked like
	Library     string // the library of the first use's client, if it said so

	Mixed bool // other keys of the pattern are written like ordinary data

	key []byte // of the latest use. Nobody is shown it
}

// Rule is the line for locks in the configuration. It has a comment if the rule would match other data, too, and is
// only a comment if it would match keys of every kind.
func (f Found) Rule() string {
	if strings.IndexFunc(f.Match, unicode.IsLetter) < 0 {
		return "# no rule for keys without a fixed word; give these locks a prefix of their own"
	}
	rule := "- match: '" + strings.ReplaceAll(f.Match, "'", "''") + "'"
	if f.Mixed {
		rule += " # matches other data, too; give the locks a prefix of their own"
	}
	return rule
}

// compare puts the most used first.
func (f Found) compare(o Found) int {
	return cmp.Or(cmp.Compare(o.Uses, f.Uses), cmp.Compare(f.Match, o.Match))
}

const (
	// mostPatterns bounds what is remembered.
	mostPatterns = 128
	// mostSiblings is the number of patterns that may differ in one word. One more, and they become one.
	mostSiblings = 8
	// longestPattern bounds a pattern, in bytes. A longer one ends with a star.
	longestPattern = 96
	// longestKey bounds what is kept of a key, in bytes.
	longestKey = 1 << 10
)

// patterns are the patterns that were found.
type patterns struct {
	all    map[string]*Found
	merged []string // those of all that stand for several patterns
}

// count counts a use of a key. It returns the key's pattern, whose Shape is empty if it is new, or nil if there is
// no room for it.
func (p *patterns) count(key []byte, db int, now time.Time) *Found {
	var space [longestPattern + longestWord]byte
	glob := patternOf(space[:0], key)
	found := p.all[string(glob)]
	for i := 0; found == nil && i < len(p.merged); i++ {
		if resp.GlobMatch(p.merged[i], glob) {
			found = p.all[p.merged[i]]
		}
	}
	if found == nil {
		if len(p.all) >= mostPatterns {
			return nil
		}
		found = p.insert(string(glob), now)
	}
	found.Uses++
	found.DB, found.Last, found.key = db, now, append(found.key[:0], key[:min(len(key), longestKey)]...)
	return found
}

// insert adds a pattern, or the one into which it and its siblings are merged. Then the result is the oldest
// sibling's Found.
func (p *patterns) insert(glob string, now time.Time) *Found {
	if p.all == nil {
		p.all = map[string]*Found{}
	}
	words := wordForm.FindAllStringIndex(glob, -1)
	for i := len(words) - 1; i >= 0 && len(words) > 1; i-- { // a pattern without a word is no rule
		wider := glob[:words[i][0]] + "*" + glob[words[i][1]:]
		var siblings []string
		for other := range p.all {
			if resp.GlobMatch(wider, []byte(other)) {
				siblings = append(siblings, other)
			}
		}
		if len(siblings) >= mostSiblings {
			return p.merge(wider, siblings)
		}
	}
	found := &Found{Match: glob, First: now}
	p.all[glob] = found
	return found
}

func (p *patterns) merge(wider string, siblings []string) *Found {
	var oldest *Found
	uses, mixed := int64(0), false
	for _, glob := range siblings {
		old := p.all[glob]
		delete(p.all, glob)
		uses, mixed = uses+old.Uses, mixed || old.Mixed
		if oldest == nil || old.First.Before(oldest.First) {
			oldest = old
		}
	}
	oldest.Match, oldest.Uses, oldest.Mixed = wider, uses, mixed
	p.all[wider] = oldest
	p.merged = append(slices.DeleteFunc(p.merged, func(glob string) bool { return p.all[glob] == nil }), wider)
	return oldest
}

// mark notes that a key is no lock.
func (p *patterns) mark(key []byte) {
	for glob, found := range p.all {
		found.Mixed = found.Mixed || resp.GlobMatch(glob, key)
	}
}

// list returns the patterns whose latest key no rule matches and no glob ignores.
func (p *patterns) list(rules route.Rules, ignored []string) []Found {
	list := make([]Found, 0, len(p.all))
	for _, found := range p.all {
		if !rules.Covers(found.DB, found.key) && !anyMatches(ignored, found.key) {
			list = append(list, *found)
			list[len(list)-1].key = nil
		}
	}
	return list
}

func anyMatches(globs []string, key []byte) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return resp.GlobMatch(glob, key) })
}

// wordForm finds the words of a pattern.
var wordForm = regexp.MustCompile(`[0-9A-Za-z]+`)

func isWord(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

const (
	// shortestHex is the length from which hexadecimal digits are a number, if one of them is a digit.
	shortestHex = 8
	// longestWord is the length from which a word is random, or somebody's text.
	longestWord = 24
)

// patternOf appends a glob that matches a key: words and separators as they are, and a star for what varies.
func patternOf(dst, key []byte) []byte {
	i := 0
	for i < len(key) && len(dst) < longestPattern-1 { // room for an escape
		switch c := key[i]; {
		case isWord(c):
			end := i + 1
			for end < len(key) && isWord(key[end]) {
				end++
			}
			if n := uuid(key[i:]); n > 0 {
				dst, i = star(dst), i+n
				continue
			}
			dst = appendWord(dst, key[i:end])
			i = end
			continue
		case c < ' ' || c > '~':
			dst = star(dst)
		case c == '*' || c == '?' || c == '[' || c == '\\':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
		i++
	}
	if i < len(key) || len(dst) > longestPattern {
		return star(dst[:min(len(dst), longestPattern)])
	}
	return dst
}

// star appends a star, and joins it with one before it: numbers with points or dashes between them are one, such
// as a date or an address.
func star(dst []byte) []byte {
	n := len(dst)
	if n > 0 && dst[n-1] == '*' && (n == 1 || dst[n-2] != '\\') {
		return dst
	}
	if n > 1 && (dst[n-1] == '-' || dst[n-1] == '.') && dst[n-2] == '*' && (n == 2 || dst[n-3] != '\\') {
		return dst[:n-1]
	}
	return append(dst, '*')
}

// appendWord appends a word of letters and digits.
func appendWord(dst, word []byte) []byte {
	digits, hex := 0, true
	for _, c := range word {
		if isDigit(c) {
			digits++
		}
		hex = hex && isHex(c)
	}
	if len(word) >= longestWord || hex && digits > 0 && len(word) >= shortestHex || len(word) == digits {
		return star(dst)
	}
	for _, c := range word {
		if isDigit(c) {
			dst = star(dst)
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// uuid returns the length of the UUID at the start of a text, or 0.
func uuid(text []byte) int {
	const size = 36
	if len(text) < size || len(text) > size && isWord(text[size]) {
		return 0
	}
	for i, c := range text[:size] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !isHex(c) {
			return 0
		}
	}
	return size
}
