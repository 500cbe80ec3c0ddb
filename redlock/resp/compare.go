package resp

import (
	"bytes"
	"slices"
)

// ExpiryTolerance is the number of milliseconds by which two readings of one absolute
// expiry may differ: TIME and PTTL are read one after the other, and each is rounded
// down. effect/undo.lua and effect/watched.lua contain the same number.
const ExpiryTolerance = 2

// Alike tells whether two different integers in replies say the same. If it is nil, none do.
type Alike func(m, n int64) bool

// Equivalent tells whether two masters' whole replies to one command say the same.
// Values must be equal, with three exceptions. Errors agree by their code. Integers
// may be alike, as remaining times are. The forms of null agree. Levels deeper than
// any real reply must be equal byte for byte, because each level is read again for
// those below it.
func Equivalent(a, b []byte, alike Alike) bool { return alike.equivalent(a, b, usualNesting) }

func (alike Alike) equivalent(a, b []byte, levels int) bool {
	a, b = withoutAttributes(a), withoutAttributes(b)
	switch {
	case !SameKind(a, b):
		return false
	case len(a) == 0 || IsNil(a) || IsError(a) || bytes.Equal(a, b):
		return true
	case levels == 0:
		return false
	}
	switch a[0] {
	case ':':
		m, okA := ParseInteger(a)
		n, okB := ParseInteger(b)
		return okA && okB && alike != nil && alike(m, n)
	case '*', '>':
		return alike.equivalentElements(a, b, 0, levels-1)
	case '~':
		return alike.equivalentElements(a, b, 1, levels-1)
	case '%':
		return alike.equivalentElements(a, b, 2, levels-1)
	}
	return false
}

// SameKind tells whether two whole replies are of one type: both null, errors
// of one code, or values of one type.
func SameKind(a, b []byte) bool {
	a, b = withoutAttributes(a), withoutAttributes(b)
	switch {
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b)
	case IsNil(a) || IsNil(b):
		return IsNil(a) && IsNil(b)
	case IsError(a) || IsError(b):
		return IsError(a) && IsError(b) && bytes.Equal(ErrorCode(a), ErrorCode(b))
	}
	return a[0] == b[0]
}

// EquivalentElements compares aggregates element by element in any order. The elements
// of a set (group 1) and the pairs of a map (group 2) have no order of their own, and
// masters send them in different ones, so they are sorted first.
func EquivalentElements(a, b []byte, group int) bool {
	return Alike(nil).equivalentElements(a, b, group, usualNesting)
}

func (alike Alike) equivalentElements(a, b []byte, group, levels int) bool {
	left, errA := Elements(a)
	right, errB := Elements(b)
	if errA != nil || errB != nil || len(left) != len(right) {
		return false
	}
	if group > 0 {
		left, right = sortGroups(left, group), sortGroups(right, group)
	}
	return slices.EqualFunc(left, right, func(x, y []byte) bool { return alike.equivalent(x, y, levels) })
}

func sortGroups(list [][]byte, size int) [][]byte {
	groups := slices.Collect(slices.Chunk(list, size))
	slices.SortStableFunc(groups, func(a, b [][]byte) int { return bytes.Compare(a[0], b[0]) })
	return slices.Concat(groups...)
}

// withoutAttributes skips the attributes in front of a value.
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
