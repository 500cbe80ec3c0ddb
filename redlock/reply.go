package redlock

import (
	"bytes"
	"strconv"
)

// Reading of whole replies, as the streams hand them over.

func isError(reply []byte) bool { return len(reply) > 0 && (reply[0] == '-' || reply[0] == '!') }

// errorText is an error reply without its "-" and line end.
func errorText(reply []byte) string {
	if len(reply) > 0 && reply[0] == '!' {
		if v, ok := parseBulk(reply); ok {
			return string(v)
		}
	}
	return string(bytes.TrimRight(reply[1:], "\r\n"))
}

func isNoScript(reply []byte) bool { return bytes.HasPrefix(reply, []byte("-NOSCRIPT")) }

func isNil(reply []byte) bool {
	return bytes.HasPrefix(reply, []byte("$-1")) || bytes.HasPrefix(reply, []byte("*-1")) || bytes.HasPrefix(reply, []byte("_"))
}

func isOK(reply []byte) bool { return bytes.Equal(reply, []byte("+OK\r\n")) }

func parseInteger(reply []byte) (int64, bool) {
	if len(reply) < 4 || reply[0] != ':' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(reply[1:len(reply)-2]), 10, 64)
	return n, err == nil
}

// parseBulk returns the payload of a bulk or verbatim string. It does not copy.
func parseBulk(reply []byte) ([]byte, bool) {
	if len(reply) == 0 || reply[0] != '$' && reply[0] != '=' && reply[0] != '!' {
		return nil, false
	}
	head := bytes.IndexByte(reply, '\n')
	if head < 0 || len(reply) < head+3 {
		return nil, false
	}
	return reply[head+1 : len(reply)-2], true
}
