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

// parseInt64 reads a signed 64-bit integer as strictly as Redis does, in the
// protocol and in arguments: no plus sign, no blanks, no leading zero, no minus
// zero.
func parseInt64(text []byte) (n int64, ok bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		digits = text[1:]
	}
	if len(digits) == 0 || digits[0] == '0' {
		return 0, len(text) == 1 && text[0] == '0'
	}
	if len(digits) > len("9223372036854775808") {
		return 0, false
	}
	var size uint64 // 19 digits always fit
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		size = size*10 + uint64(digit-'0')
	}
	if negative {
		return -int64(size), size <= -math.MinInt64
	}
	return int64(size), size <= math.MaxInt64
}
