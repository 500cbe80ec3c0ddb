package resp

import (
	"bytes"
	"slices"
	"strconv"
)

// AppendCommand appends a command with its arguments.
func AppendCommand[T string | []byte](dst []byte, args ...T) []byte {
	room := 16 // for the header, and for as much before each argument
	for _, a := range args {
		room += 16 + len(a)
	}
	dst = AppendArray(slices.Grow(dst, room), len(args))
	for _, a := range args {
		dst = AppendBulk(dst, a)
	}
	return dst
}

// AppendArray appends the header of an array of n elements.
func AppendArray(dst []byte, n int) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}

// AppendBulk appends a bulk string.
func AppendBulk[T string | []byte](dst []byte, v T) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(v)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, v...)
	return append(dst, '\r', '\n')
}

// Decimal returns an integer as an argument.
func Decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// ParseDecimal reads a value as INCR does: only what Decimal would write is a
// number.
func ParseDecimal(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil && bytes.Equal(Decimal(n), value)
}
