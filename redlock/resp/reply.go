package resp

import (
	"bytes"
	"strconv"
	"time"
)

// IsNil tells whether a reply is null, in any of its three forms.
func IsNil(reply []byte) bool {
	return bytes.HasPrefix(reply, []byte("$-1")) || bytes.HasPrefix(reply, []byte("*-1")) || bytes.HasPrefix(reply, []byte("_"))
}

// IsOK tells whether a reply is +OK.
func IsOK(reply []byte) bool { return bytes.Equal(reply, []byte("+OK\r\n")) }

// ParseInteger reads an integer reply. It returns false for any other reply.
func ParseInteger(reply []byte) (int64, bool) {
	if len(reply) < 4 || reply[0] != ':' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(reply[1:len(reply)-2]), 10, 64)
	return n, err == nil
}

// ParseBulk returns the payload of a bulk or verbatim string. It does not copy.
func ParseBulk(reply []byte) ([]byte, bool) {
	if len(reply) == 0 || reply[0] != '$' && reply[0] != '=' && reply[0] != '!' {
		return nil, false
	}
	head := bytes.IndexByte(reply, '\n')
	if head < 0 || len(reply) < head+3 {
		return nil, false
	}
	return reply[head+1 : len(reply)-2], true
}

// ParseTime reads TIME's reply, two bulk strings, as the time since 1970. Every batch
// ends with TIME, so this allocates nothing.
func ParseTime(reply []byte) (time.Duration, bool) {
	rest, ok := bytes.CutPrefix(reply, []byte("*2\r\n"))
	if !ok {
		return 0, false
	}
	var numbers [2]int64
	for i := range numbers {
		var header, text []byte
		header, rest, ok = bytes.Cut(rest, crlf)
		if !ok || len(header) == 0 || header[0] != '$' {
			return 0, false
		}
		if text, rest, ok = bytes.Cut(rest, crlf); !ok {
			return 0, false
		}
		var err error
		if numbers[i], err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return 0, false
		}
	}
	return time.Duration(numbers[0])*time.Second + time.Duration(numbers[1])*time.Microsecond, len(rest) == 0
}

var crlf = []byte("\r\n")
