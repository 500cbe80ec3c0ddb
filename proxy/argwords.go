package proxy

import (
	"bytes"
	"math"
)

// How Redis reads the words and numbers of a command's arguments. Its option
// words are C strings: they end at a NUL byte. Its numbers are not.

// untilNUL is what a C string function sees of an argument.
func untilNUL(arg []byte) []byte {
	if i := bytes.IndexByte(arg, 0); i >= 0 {
		return arg[:i]
	}
	return arg
}

// isWord compares an argument with an option word in upper case, as strcasecmp
// does.
func isWord(arg []byte, word string) bool {
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

// parseRedisInteger reads a signed 64-bit integer as strictly as Redis: no
// plus sign, no blanks, no leading zero, no minus zero.
func parseRedisInteger(arg []byte) (n int64, ok bool) {
	digits := arg
	negative := len(arg) > 0 && arg[0] == '-'
	if negative {
		digits = arg[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && (negative || len(digits) > 1) {
		return 0, false
	}
	var magnitude uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		magnitude = magnitude*10 + uint64(c-'0') // 19 digits fit
	}
	if negative {
		if magnitude > -math.MinInt64 {
			return 0, false
		}
		return -int64(magnitude), true
	}
	if magnitude > math.MaxInt64 {
		return 0, false
	}
	return int64(magnitude), true
}
