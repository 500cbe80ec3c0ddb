package effect

import (
	"bytes"
	"math"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// What PTTL says of a key without an expiry, and of one that is not there.
const (
	NoExpiry = -1
	NoKey    = -2
)

// Tolerance is by how many milliseconds two readings of one absolute expiry may
// differ: TIME and PTTL are read one after the other, and each is rounded down.
// undo.lua and watched.lua know the number too.
const Tolerance = 2

// An Image is what a master's key looked like at one moment.
type Image struct {
	Dump []byte // DUMP's payload; nil: the key was absent
	PTTL int64  // milliseconds it had left (0 is a living key), NoExpiry or NoKey
	Now  int64  // the master's TIME beside it, in milliseconds
}

// Missing is the image of a key that does not exist.
var Missing = Image{PTTL: NoKey}

// Absent tells whether the key did not exist.
func (i Image) Absent() bool { return i.Dump == nil }

// There tells whether the key existed.
func (i Image) There() bool { return !i.Absent() }

// Text is the value of a string; nil for any other key.
func (i Image) Text() []byte {
	text, _ := rdb.StringValue(i.Dump)
	return text
}

// Number is the value of a counter; false for any other key.
func (i Image) Number() (int64, bool) { return resp.ParseDecimal(i.Text()) }

// SameContent tells whether a key holds the same on two masters, whatever its expiry.
func SameContent(a, b Image) bool { return rdb.Same(a.Dump, b.Dump) }

// UnchangedSince tells whether a master's key is as it was some time before, its
// expiry too.
func (i Image) UnchangedSince(before Image) bool {
	switch did := Compare(before, i); did {
	case StayedAbsent:
		return true
	default:
		return did == Kept && Near(before.Expiry(), i.Expiry(), Tolerance)
	}
}

// passing tells that the key is as good as gone: on one master it may have
// expired before the look, on another not.
func (i Image) passing() bool { return i.PTTL >= 0 && i.PTTL <= Tolerance }

// lasting is the payload of a key that is there to stay; nil for the others.
func (i Image) lasting() []byte {
	if i.passing() {
		return nil
	}
	return i.Dump
}

// Expiry is the absolute expiry in milliseconds of the master's clock, or
// NoExpiry. That PTTL and TIME are read side by side is what makes it right:
// up to Redis 7.0 both run on inside MULTI, from 7.2 on both stand still.
func (i Image) Expiry() int64 {
	if i.PTTL < 0 {
		return NoExpiry
	}
	return laterBy(i.Now, i.PTTL)
}

// laterBy adds a TTL, which may be as large as an int64 can hold, to a time.
func laterBy(time, pttl int64) int64 {
	if pttl > math.MaxInt64-time {
		return math.MaxInt64
	}
	return time + pttl
}

// A Change is what happened to a key between two images of it.
type Change uint8

const (
	StayedAbsent Change = iota
	Kept
	Moved // only its expiry changed
	Created
	Changed
	Deleted
)

// String is for people and tests.
func (e Change) String() string {
	return [...]string{"stayed absent", "kept", "moved", "created", "changed", "deleted"}[e]
}

// Wrote tells whether the key is not as it was.
func (e Change) Wrote() bool { return e >= Moved }

// Compare compares two images of one key in one transaction on one master. An
// expiry has to move by more than the transaction took, where time goes on in
// it: a master that was held up between TIME and PTTL misread it by that much.
func Compare(before, after Image) Change {
	held := max(0, after.Now-before.Now)
	switch {
	case before.Absent() && after.Absent():
		return StayedAbsent
	case before.Absent():
		return Created
	case after.Absent():
		return Deleted
	case !bytes.Equal(before.Dump, after.Dump):
		return Changed
	case !Near(before.Expiry(), after.Expiry(), Tolerance+held):
		return Moved
	}
	return Kept
}

// Near tells whether two absolute expiries differ by no more than the tolerance.
// NoExpiry is near to itself only.
func Near(a, b, tolerance int64) bool {
	if a == NoExpiry || b == NoExpiry {
		return a == b
	}
	return max(a, b)-min(a, b) <= tolerance
}
