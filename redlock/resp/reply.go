package resp

import (
	"bytes"
	"strconv"
)

// IsNil tells whether a reply is null, in any of its three forms.
func IsNil(reply []byte) bool {
	return bytes.HasPrefix(reply, []byte("$-1")) || bytes.HasPrefix(reply, []byte("*-1")) || bytes.HasPrefix(reply, []byte("_"))
}

// IsOK tells whether a reply is +OK.
func IsOK(reply []byte) bool { return bytes.Equal(reply, []byte("+OK\r\n")) }

// ParseInteger returns what an integer reply says; false if it is none.
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
