package wire

import (
	"bytes"
	"strconv"

	"redlock-proxy/redlock/resp"
)

// Redis reads option words as C strings: they end at a NUL byte. The functions of this
// file do the same.

// UntilNUL returns the part of an argument that a C string function sees.
func UntilNUL(arg []byte) []byte {
	if i := bytes.IndexByte(arg, 0); i >= 0 {
		return arg[:i]
	}
	return arg
}

// IsWord tells whether an argument is an option word, as strcasecmp does: it ignores
// case and all bytes from a NUL on. word is in upper case.
func IsWord(arg []byte, word string) bool {
	if len(arg) < len(word) || len(arg) > len(word) && arg[len(word)] != 0 {
		return false
	}
	for i, c := range arg[:len(word)] {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// IsForgedRequest recognises HTTP that an attacker sends through a browser, by the name of the
// command. Redis closes such connections, too, because the body could hold commands.
func IsForgedRequest(name []byte) bool { return IsWord(name, "POST") || IsWord(name, "HOST:") }

// SelectCommand returns a SELECT of the proxy's own.
func SelectCommand(db int) []byte {
	return resp.AppendCommand(nil, "SELECT", strconv.Itoa(db))
}
