package proxytest

import (
	"bytes"
	"fmt"
)

// Words splits a line into arguments at every blank. Two blanks in a row make an empty
// argument.
func Words(line string) [][]byte {
	return bytes.Split([]byte(line), []byte(" "))
}

// EncodeCommand returns a command as clients send it: a RESP array of bulk strings.
func EncodeCommand(args ...[]byte) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		raw = fmt.Appendf(raw, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return raw
}

// Cuts returns the offsets at which tests cut an input in two. They are all offsets if
// the input is short. For a long one they are those near its ends and a few between.
func Cuts(input string) []int {
	var at []int
	for i := range len(input) + 1 {
		if i < 40 || len(input)-i < 40 || len(input) < 400 || i%(len(input)/5) == 0 {
			at = append(at, i)
		}
	}
	return at
}
