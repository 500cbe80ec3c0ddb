package effect

import (
	"bytes"
	"math"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// PTTL's replies for a key without an expiry, and for a key that does not exist.
const (
	NoExpiry = -1
	NoKey    = -2
)

// An Image is the state of a key on one master at one moment.
type Image struct {
	Dump []byte // DUMP's payload; nil if the key was absent
	PTTL int64  // milliseconds left (at 0 the key still exists), NoExpiry or NoKey
	Now  int64  // the master's TIME at that moment, in milliseconds
}

// Missing is the image of a key that does not exist.
var Missing = Image{PTTL: NoKey}

// Absent tells whether the key did not exist.
func (i Image) Absent() bool { return i.Dump == nil }

// There tells whether the key existed.
func (i Image) There() bool { return !i.Absent() }

// Text is the value of a string, or nil for any other key.
func (i Image) Text() []byte {
	text, _ := rdb.StringValue(i.Dump)
	return text
}

// Holder is the field of a hash that has only this one, with a count. So re-entrant locks
// name their holder. It is nil for any other key.
func (i Image) Holder() []byte {
	v := rdb.Read(i.Dump)
	if v.Kind != rdb.Hash || len(v.Items) != 2 {
		return nil
	}
	if _, counts := resp.ParseDecimal(v.Items[1]); !counts {
		return nil
	}
	return v.Items[0]
}

// SameContent tells whether a key has the same content on two masters. Its expiry
// does not matter, nor do times that it contains.
func SameContent(a, b Image) bool { return rdb.Same(a.Dump, b.Dump) }

// UnchangedSince tells whether a master's key, with its expiry, is as it was before.
func (i Image) UnchangedSince(before Image) bool {
	switch did := Compare(before, i); did {
	case StayedAbsent:
		return true
	default:
		return did == Kept && Near(before.Expiry(), i.Expiry(), resp.ExpiryTolerance)
	}
}

// IsOver tells whether the key is absent, or about to expire. It may have expired before the
// look on one master and not on another.
func (i Image) IsOver() bool { return i.Absent() || i.PTTL >= 0 && i.PTTL <= resp.ExpiryTolerance }

// mayEndBy tells whether the key may have expired by a time of the master's clock.
func (i Image) mayEndBy(now int64) bool {
	return i.PTTL >= 0 && i.Expiry() <= laterBy(now, resp.ExpiryTolerance)
}

// Expiry is the absolute expiry in milliseconds of the master's clock, or NoExpiry.
// It is right because PTTL and TIME are read one next to the other: inside MULTI
// both clocks go on up to Redis 7.0, and both stand still from 7.2 on.
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

// A Change is what happened to a key between two images.
type Change uint8

const (
	StayedAbsent Change = iota
	Kept
	Moved // only the expiry changed
	Created
	Changed
	Deleted
)

// String is for people and tests.
func (e Change) String() string {
	return [...]string{"stayed absent", "kept", "moved", "created", "changed", "deleted"}[e]
}

// Wrote tells whether the key or its expiry changed.
func (e Change) Wrote() bool { return e >= Moved }

// Compare compares two images of one key, read in one transaction on one master. An
// expiry counts as moved only if it moved by more than the transaction took: a master
// that was held up between TIME and PTTL misread it by up to that much.
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
	case !Near(before.Expiry(), after.Expiry(), resp.ExpiryTolerance+held):
		return Moved
	}
	return Kept
}

// Near tells whether two absolute expiries differ by no more than the tolerance, in
// milliseconds. NoExpiry is near to itself only.
func Near(a, b, tolerance int64) bool {
	if a == NoExpiry || b == NoExpiry {
		return a == b
	}
	return max(a, b)-min(a, b) <= tolerance
}
