package proxy

import (
	"bytes"

	"redlock-proxy/redlock/resp"
)

// Reading of whole replies. None of these copies.

// resp.IsError tells whether a reply is an error.
func isError(reply []byte) bool { return len(reply) > 0 && (reply[0] == '-' || reply[0] == '!') }

// integerOf reads an integer reply.
func integerOf(reply []byte) (int64, bool) {
	if len(reply) < 4 || reply[0] != ':' {
		return 0, false
	}
	return parseInt64(reply[1 : len(reply)-2])
}

// textOf is what a bulk or verbatim string says; a null says nothing.
func textOf(reply []byte) (text []byte, ok bool) {
	if len(reply) == 0 || reply[0] != '$' && reply[0] != '=' {
		return nil, false
	}
	header := bytes.IndexByte(reply, '\n') + 1
	if header == 0 || len(reply) < header+2 {
		return nil, false
	}
	text = reply[header : len(reply)-2]
	if reply[0] == '=' {
		text = bytes.TrimPrefix(text, []byte("txt:"))
	}
	return text, true
}

// elementsOf splits one whole array into its elements, slices of reply
// without the pushes that may stand between them; nil where it is no array or
// a null one.
func elementsOf(reply []byte) [][]byte {
	if len(reply) == 0 || reply[0] != '*' {
		return nil
	}
	header := bytes.IndexByte(reply, '\n')
	var list [][]byte
	var scanner resp.Scanner
	for rest := reply[header+1:]; len(rest) > 0; {
		n, done, err := scanner.Scan(rest)
		if err != nil || !done {
			return nil
		}
		if scanner.Kind() != '>' {
			list = append(list, rest[:n:n])
		}
		rest = rest[n:]
	}
	return list
}
