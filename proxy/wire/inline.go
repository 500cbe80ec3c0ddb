package wire

// splitInline appends the arguments of an inline command to args[:0]. line has its line
// end and contains no NUL. The rules are Redis's (sdssplitargs):
//
//   - White space separates arguments.
//   - "..." allows \xHH, \n, \r, \t, \b, \a, and \ before any other byte.
//   - '...' allows only \'.
//   - A quote may open inside an argument. The argument ends where the quote closes.
//
// Arguments without quotes are parts of line. The others are copies.
func splitInline(args [][]byte, line []byte) ([][]byte, error) {
	line = line[:len(line)-1]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	args = args[:0]
	var unquoted []byte // its capacity is enough for all arguments, so none of them moves
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args, nil
		}
		start := i
		for i < len(line) && !endsWord(line[i]) && line[i] != '"' && line[i] != '\'' {
			i++
		}
		if i == len(line) || endsWord(line[i]) {
			args = append(args, line[start:i:i])
			continue
		}
		if unquoted == nil {
			unquoted = make([]byte, 0, len(line))
		}
		from := len(unquoted)
		unquoted = append(unquoted, line[start:i]...)
		var used int
		var closed bool
		if line[i] == '"' {
			unquoted, used, closed = unquoteDouble(unquoted, line[i+1:])
		} else {
			unquoted, used, closed = unquoteSingle(unquoted, line[i+1:])
		}
		i += 1 + used
		if !closed || i < len(line) && !isSpace(line[i]) {
			return args[:0], ProtocolError{Text: ErrQuotes}
		}
		args = append(args, unquoted[from:len(unquoted):len(unquoted)])
	}
}

// unquoteDouble appends the content of a "..." to dst. text begins behind the opening
// quote. used is the number of bytes up to and including the closing quote.
func unquoteDouble(dst, text []byte) (_ []byte, used int, closed bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return dst, i + 1, true
		case c == '\\' && i+3 < len(text) && text[i+1] == 'x' && isHex(text[i+2]) && isHex(text[i+3]):
			dst = append(dst, hexValue(text[i+2])<<4|hexValue(text[i+3]))
			i += 3
		case c == '\\' && i+1 < len(text):
			i++
			dst = append(dst, unescape(text[i]))
		default:
			dst = append(dst, c)
		}
	}
	return dst, len(text), false
}

// unquoteSingle is unquoteDouble for '...'.
func unquoteSingle(dst, text []byte) (_ []byte, used int, closed bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'':
			return dst, i + 1, true
		case c == '\\' && i+1 < len(text) && text[i+1] == '\'':
			i++
			dst = append(dst, '\'')
		default:
			dst = append(dst, c)
		}
	}
	return dst, len(text), false
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// isSpace tells whether c may be between two arguments. endsWord tells whether c ends an
// unquoted argument. As in Redis, they differ for \v and \f.
func isSpace(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
