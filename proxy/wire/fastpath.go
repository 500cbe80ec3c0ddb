package wire

// fastPathArgs is the largest number of arguments of a command on the fast path. Longer
// commands rarely arrive in one piece, and the fast path would check each piece in vain.
const fastPathArgs = 64

// splitFast is the fast path. It splits the command at the front of frame if the
// command is complete, within the limits, and in the one form that clients really send.
// Nearly all commands are. One pass without state is enough; measuring a command and
// then splitting it takes twice as long. If splitFast returns 0, nothing is
// decided: measureArray then applies all of Redis's rules.
func (d *Decoder) splitFast(frame []byte) (size int) {
	mostArgs, mostBytes := min(d.limits.Multibulk, fastPathArgs), d.limits.Bulk
	if !d.authenticated {
		mostArgs, mostBytes = min(mostArgs, d.limits.LoginMultibulk), min(mostBytes, d.limits.LoginBulk)
	}
	count, at := fastLength(frame, '*')
	if at == 0 || count == 0 || count > mostArgs {
		return 0
	}
	for range count {
		length, header := fastLength(frame[at:], '$')
		from := at + header
		end := from + length
		if header == 0 || int64(length) > mostBytes || end+2 > len(frame) || frame[end] != '\r' || frame[end+1] != '\n' {
			return 0
		}
		d.args = append(d.args, frame[from:end:end])
		at = end + 2
	}
	return at
}

// fastLength reads a line of a type byte and a number. size is the line's length with
// its line end, or 0 if the line is incomplete or not in the form that clients send.
func fastLength(line []byte, of byte) (value, size int) {
	const digits = 9 // fit into an int on every platform
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
