package wire

import "bytes"

// How Redis reads the words of a command's arguments: its option words are C
// strings, they end at a NUL byte.

// UntilNUL is what a C string function sees of an argument.
func UntilNUL(arg []byte) []byte {
	if i := bytes.IndexByte(arg, 0); i >= 0 {
		return arg[:i]
	}
	return arg
}

// IsWord compares an argument with an option word in upper case, as strcasecmp
// does.
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
