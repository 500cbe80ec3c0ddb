package redlock

import (
	"bytes"
	"slices"
)

// sameShape tells whether two masters' whole replies to one command say the
// same: values are equal, but errors agree by their code, and integers also if
// both are above 1, because remaining times differ by milliseconds. Null is
// null in each of its forms. What stands deeper than a command's reply ever does is
// equal only byte for byte: each level is read anew for those below it.
func sameShape(a, b []byte) bool { return sameShapeWithin(a, b, usualNesting) }

func sameShapeWithin(a, b []byte, levels int) bool {
	a, b = withoutAttributes(a), withoutAttributes(b)
	switch {
	case !sameKind(a, b):
		return false
	case len(a) == 0 || isNil(a) || isError(a) || bytes.Equal(a, b):
		return true
	case levels == 0:
		return false
	}
	switch a[0] {
	case ':':
		m, okA := parseInteger(a)
		n, okB := parseInteger(b)
		return okA && okB && m > 1 && n > 1
	case '*', '>':
		return sameElementsWithin(a, b, 0, levels-1)
	case '~':
		return sameElementsWithin(a, b, 1, levels-1)
	case '%':
		return sameElementsWithin(a, b, 2, levels-1)
	}
	return false
}

// sameKind tells whether two whole replies are of one type: both null, errors
// of one code, or values of one type.
func sameKind(a, b []byte) bool {
	a, b = withoutAttributes(a), withoutAttributes(b)
	switch {
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b)
	case isNil(a) || isNil(b):
		return isNil(a) && isNil(b)
	case isError(a) || isError(b):
		return isError(a) && isError(b) && bytes.Equal(errorCode(a), errorCode(b))
	}
	return a[0] == b[0]
}

// sameElements compares aggregates element by element. Those of a set (group
// 1) and of a map (group 2: key and value) have no order of their own, and
// masters do send them differently, so they are put into one first.
func sameElements(a, b []byte, group int) bool {
	return sameElementsWithin(a, b, group, usualNesting)
}

func sameElementsWithin(a, b []byte, group, levels int) bool {
	left, errA := elements(a)
	right, errB := elements(b)
	if errA != nil || errB != nil || len(left) != len(right) {
		return false
	}
	if group > 0 {
		left, right = sortGroups(left, group), sortGroups(right, group)
	}
	return slices.EqualFunc(left, right, func(x, y []byte) bool { return sameShapeWithin(x, y, levels) })
}

func sortGroups(list [][]byte, size int) [][]byte {
	groups := slices.Collect(slices.Chunk(list, size))
	slices.SortStableFunc(groups, func(a, b [][]byte) int { return bytes.Compare(a[0], b[0]) })
	return slices.Concat(groups...)
}

// withoutAttributes leaves out the attributes in front of a value.
func withoutAttributes(reply []byte) []byte {
	for len(reply) > 0 && reply[0] == '|' {
		_, count, rest, err := aggregateHeader(reply)
		if err == nil {
			_, rest, err = takeElements(rest, count)
		}
		if err != nil {
			return reply
		}
		reply = rest
	}
	return reply
}

// errorCode is the first word of an error reply.
func errorCode(reply []byte) []byte {
	text := reply[1:]
	if reply[0] == '!' {
		text, _ = parseBulk(reply)
	}
	if end := bytes.IndexAny(text, " \r\n"); end >= 0 {
		text = text[:end]
	}
	return text
}

// failedReply tells whether a reply says that the master cannot serve now, so
// that it is no vote. Every other error is an answer. EXECABORT is one only
// where a command was refused when it was queued, which its reader knows.
func failedReply(reply []byte) bool {
	if !isError(reply) {
		return false
	}
	switch string(errorCode(reply)) {
	case "LOADING", "BUSY", "NOAUTH", "EXECABORT":
		return true
	}
	return failedInside(reply)
}

// failedInside is failedReply for a command that EXEC got to: the other codes
// say that nothing is executed at all, so there they are a script's own words.
func failedInside(reply []byte) bool {
	if !isError(reply) {
		return false
	}
	code := errorCode(reply)
	// Redis up to 6.2 wraps the error that ended a script.
	if bytes.HasPrefix(reply, []byte("-ERR Error running script")) {
		if i := bytes.LastIndex(reply, []byte(": -")); i >= 0 {
			code = errorCode(reply[i+2:])
		}
	}
	switch string(code) {
	case "READONLY", "MASTERDOWN", "MISCONF", "OOM", "NOPERM", "NOREPLICAS":
		return true
	}
	return isForbiddenInside(reply)
}

// isForbidden tells that the proxy's user lacks a right.
func isForbidden(reply []byte) bool {
	return isError(reply) && string(errorCode(reply)) == "NOPERM" || isForbiddenInside(reply)
}

// isForbiddenInside: Redis 7 has no code for a right that a script lacks.
func isForbiddenInside(reply []byte) bool {
	return isError(reply) && bytes.Contains(reply, []byte("The user executing the script can't "))
}

// isWrongType is the one error to a command of our own that is an answer. A
// script's may stand behind other words.
func isWrongType(reply []byte) bool {
	return isError(reply) && bytes.Contains(reply, []byte("WRONGTYPE "))
}
