package wire

// usualArgs is how many arguments a command may have to be split at the first
// look at it. Longer ones rarely come in one piece, and every look at a piece
// would be for nothing.
const usualArgs = 64

// splitUsual splits the command at the front of frame if it is there whole, is
// within the limits, and has the one form that clients in fact send. That is
// nearly all there is, and is done in one look without state; to measure a
// command and have redcon split it afterwards takes twice as long. size 0 decides nothing: measureArray then looks with all of Redis's rules.
func (g *Decoder) splitUsual(frame []byte) (size int) {
	mostArgs, mostBytes := min(g.limits.Multibulk, usualArgs), g.limits.Bulk
	if !g.authenticated {
		mostArgs, mostBytes = min(mostArgs, g.limits.LoginMultibulk), min(mostBytes, g.limits.LoginBulk)
	}
	count, at := usualLength(frame, '*')
	if at == 0 || count == 0 || count > mostArgs {
		return 0
	}
	for range count {
		length, header := usualLength(frame[at:], '$')
		from := at + header
		end := from + length
		if header == 0 || int64(length) > mostBytes || end+2 > len(frame) || frame[end] != '\r' || frame[end+1] != '\n' {
			return 0
		}
		g.args = append(g.args, frame[from:end:end])
		at = end + 2
	}
	return at
}

// usualLength reads a line of a type byte and a number, size being its length
// with its line end: 0 where it is not whole or not as clients write it.
func usualLength(line []byte, of byte) (value, size int) {
	const digits = 9 // as many fit an int everywhere
	if len(line) < len("*1\r\n") || line[0] != of {
		return 0, 0
	}
	for i, c := range line[1:min(len(line)-1, digits+2)] {
		switch {
		case '0' <= c && c <= '9':
			value = value*10 + int(c-'0')
		case c == '\r' && line[i+2] == '\n' && (i == 1 || i > 1 && line[1] != '0'):
			return value, i + 3
		default:
			return 0, 0
		}
	}
	return 0, 0
}
