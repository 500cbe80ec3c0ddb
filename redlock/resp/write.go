package resp

import (
	"math"
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

// AppendEval appends an EVAL command.
func AppendEval(dst []byte, script string, keys [][]byte, args ...[]byte) []byte {
	dst = AppendArray(dst, 3+len(keys)+len(args))
	dst = AppendBulk(dst, "EVAL")
	dst = AppendBulk(dst, script)
	dst = AppendBulk(dst, strconv.Itoa(len(keys)))
	for _, k := range keys {
		dst = AppendBulk(dst, k)
	}
	for _, a := range args {
		dst = AppendBulk(dst, a)
	}
	return dst
}

// Decimal encodes an integer as an argument.
func Decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// ParseDecimal reads a signed 64-bit integer as strictly as Redis does in the protocol,
// in arguments and in values. It accepts exactly what Decimal writes: no plus sign, no
// blanks, no leading zero, no minus zero.
func ParseDecimal(value []byte) (int64, bool) {
	digits := value
	negative := len(value) > 0 && value[0] == '-'
	if negative {
		digits = value[1:]
	}
	if len(digits) == 0 || digits[0] == '0' {
		return 0, len(value) == 1 && value[0] == '0'
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
