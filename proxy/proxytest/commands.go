package proxytest

import (
	"bytes"
	"fmt"
)

// Words splits a line into arguments at single blanks, so that two blanks in a
// row make an empty one.
func Words(line string) [][]byte {
	return bytes.Split([]byte(line), []byte(" "))
}

// EncodeCommand writes a command the way clients do.
func EncodeCommand(args ...[]byte) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		raw = fmt.Appendf(raw, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return raw
}

// Cuts are the places at which an input is cut: everywhere if it is short.
func Cuts(input string) []int {
	var at []int
	for i := range len(input) + 1 {
		if i < 40 || len(input)-i < 40 || len(input) < 400 || i%(len(input)/5) == 0 {
			at = append(at, i)
		}
	}
	return at
}
