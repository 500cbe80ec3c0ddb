package resp

// GlobMatch tells whether text matches pattern. It decides as Redis's stringmatchlen
// does, for `*`, `?`, `[a-c]`, `[^a-c]` and `\`, and also for an unclosed or empty set.
// One thing differs: bytes are unsigned here, while a server compares the ends of a
// range as its machine's char. As in Redis, `*` does not match the empty string.
// Redis's commands with a pattern have a special case for a lone `*`; its pub/sub has none.
func GlobMatch(pattern string, text []byte) bool {
	matched, _ := globFrom(pattern, text)
	return matched
}

// globFrom also returns whether the rest of the pattern matches nowhere in text. Then
// an earlier `*` need not try to match more bytes. Without this a pattern with many
// stars takes exponential time.
func globFrom(pattern string, text []byte) (matched, nowhere bool) {
	for len(pattern) > 0 && len(text) > 0 {
		switch pattern[0] {
		case '*':
			for len(pattern) > 1 && pattern[1] == '*' {
				pattern = pattern[1:]
			}
			rest := pattern[1:]
			if IsLiteral(rest) { // prefix* and *suffix
				at := len(text) - len(rest)
				return at >= 0 && string(text[at:]) == rest, true
			}
			for ; len(text) > 0; text = text[1:] {
				matched, nowhere = globFrom(rest, text)
				if matched || nowhere {
					return matched, nowhere
				}
			}
			return false, true
		case '?':
		case '[':
			var in bool
			if in, pattern = globSet(pattern[1:], text[0]); !in {
				return false, false
			}
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
			fallthrough
		default:
			if pattern[0] != text[0] {
				return false, false
			}
		}
		pattern, text = pattern[1:], text[1:]
		for len(text) == 0 && len(pattern) > 0 && pattern[0] == '*' {
			pattern = pattern[1:]
		}
	}
	return len(pattern) == 0 && len(text) == 0, false
}

// globSet tells whether c is in the set behind a `[`. It returns the rest of the
// pattern, beginning with the set's last byte.
func globSet(set string, c byte) (in bool, rest string) {
	negated := len(set) > 0 && set[0] == '^'
	if negated {
		set = set[1:]
	}
	for {
		switch {
		case len(set) == 0: // an unclosed set ends with the pattern
			return in != negated, "]"
		case len(set) >= 2 && set[0] == '\\':
			set = set[1:]
			in = in || set[0] == c
		case set[0] == ']':
			return in != negated, set
		case len(set) >= 3 && set[1] == '-':
			low, high := min(set[0], set[2]), max(set[0], set[2])
			in = in || low <= c && c <= high
			set = set[2:]
		default:
			in = in || set[0] == c
		}
		set = set[1:]
	}
}

// IsLiteral tells whether pattern matches only itself.
func IsLiteral(pattern string) bool {
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '[', '\\':
			return false
		}
	}
	return true
}
