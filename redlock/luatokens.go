package redlock

import "strings"

// A luaToken is a word of Lua 5.1, the language of Redis's scripts.
type luaToken struct {
	kind luaKind
	text string // of a luaPlain string: what is between the quotes
}

type luaKind uint8

const (
	luaName luaKind = iota // or a keyword
	luaNumber
	luaPlain  // a quoted string without a backslash
	luaString // any other; its text is not kept
	luaSymbol
)

func (t luaToken) is(symbol string) bool { return t.kind == luaSymbol && t.text == symbol }

// luaTokens splits a script as Lua itself does, leaving out comments. False
// means that there is something in it of which that is not certain: it may be
// no Lua, or have bytes outside strings and comments that are not ASCII text.
func luaTokens(script string) ([]luaToken, bool) {
	tokens := make([]luaToken, 0, len(script)/4)
	for rest := script; len(rest) > 0; {
		c := rest[0]
		n := 1
		token := luaToken{kind: luaSymbol}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			rest = rest[1:]
			continue
		case strings.HasPrefix(rest, "--"):
			if n = luaComment(rest); n < 0 {
				return nil, false
			}
			rest = rest[n:]
			continue
		case isLuaLetter(c):
			for n < len(rest) && (isLuaLetter(rest[n]) || isDigit(rest[n])) {
				n++
			}
			token = luaToken{luaName, rest[:n]}
		case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
			n = luaNumberLength(rest)
			token = luaToken{luaNumber, rest[:n]}
		case c == '"' || c == '\'':
			stops := "\"\\\r\n"
			if c == '\'' {
				stops = "'\\\r\n"
			}
			end := strings.IndexAny(rest[1:], stops)
			if end < 0 || rest[1+end] == '\r' || rest[1+end] == '\n' {
				return nil, false
			}
			if rest[1+end] == c {
				n = end + 2
				token = luaToken{luaPlain, rest[1 : 1+end]}
				break
			}
			if n = luaQuotedLength(rest); n < 0 {
				return nil, false
			}
			token.kind = luaString
		case c == '[' && luaLongLevel(rest) >= 0:
			if n = luaLongLength(rest); n < 0 {
				return nil, false
			}
			token.kind = luaString
		default:
			if n = luaSymbolLength(rest); n == 0 {
				return nil, false
			}
			token.text = rest[:n]
		}
		tokens = append(tokens, token)
		rest = rest[n:]
	}
	return tokens, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLuaLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// luaSymbolLength is 0 for what is no symbol of Lua.
func luaSymbolLength(rest string) int {
	for _, symbol := range []string{"...", "..", "==", "~=", "<=", ">="} {
		if strings.HasPrefix(rest, symbol) {
			return len(symbol)
		}
	}
	if strings.IndexByte("+-*/%^#<>=(){}[];:,.", rest[0]) >= 0 {
		return 1
	}
	return 0
}

// luaNumberLength follows Lua's own reading, which takes what it can and then
// says whether it is a number.
func luaNumberLength(rest string) int {
	n := 0
	for n < len(rest) && (isDigit(rest[n]) || rest[n] == '.') {
		n++
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		n++
		if n < len(rest) && (rest[n] == '+' || rest[n] == '-') {
			n++
		}
	}
	for n < len(rest) && (isDigit(rest[n]) || isLuaLetter(rest[n])) {
		n++
	}
	return n
}

// luaQuotedLength is -1 for a string that does not end on its line.
func luaQuotedLength(rest string) int {
	for n := 1; n < len(rest); n++ {
		switch rest[n] {
		case rest[0]:
			return n + 1
		case '\\':
			n++
		case '\r', '\n':
			return -1
		}
	}
	return -1
}

// luaLongLevel is how many equal signs stand in a long bracket, or -1 if there
// is none.
func luaLongLevel(rest string) int {
	n := 1
	for n < len(rest) && rest[n] == '=' {
		n++
	}
	if n < len(rest) && rest[n] == '[' {
		return n - 1
	}
	return -1
}

// luaLongLength is the length of a long bracket with its contents, or -1 if it
// does not end.
func luaLongLength(rest string) int {
	level := luaLongLevel(rest)
	closing := "]" + strings.Repeat("=", level) + "]"
	end := strings.Index(rest[level+2:], closing)
	if end < 0 {
		return -1
	}
	return level + 2 + end + len(closing)
}

// luaComment is the length of the comment that begins with "--", or -1 if it
// does not end.
func luaComment(rest string) int {
	if len(rest) > 2 && rest[2] == '[' && luaLongLevel(rest[2:]) >= 0 {
		if n := luaLongLength(rest[2:]); n >= 0 {
			return 2 + n
		}
		return -1
	}
	if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
		return end
	}
	return len(rest)
}
