package redlock

import (
	"bytes"
	"math"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// What PTTL says of a key without an expiry, and of one that is not there.
const (
	noExpiry = -1
	noKey    = -2
)

// expiryTolerance is by how many milliseconds two readings of one absolute
// expiry may differ: TIME and PTTL are read one after the other, and each is
// rounded down. undo.lua knows the number too.
const expiryTolerance = 2

// An image is what a master's key looked like at one moment.
type image struct {
	dump []byte // DUMP's payload; nil: the key was absent
	pttl int64  // milliseconds it had left (0 is a living key), noExpiry or noKey
	now  int64  // the master's TIME beside it, in milliseconds
}

// absentImage is what a key looks like that is not there.
var absentImage = image{pttl: noKey}

func (i image) absent() bool { return i.dump == nil }

func (i image) there() bool { return !i.absent() }

// text is a string's value; nil of any other key.
func (i image) text() []byte {
	text, _ := rdb.StringValue(i.dump)
	return text
}

// number is a counter's.
func (i image) number() (int64, bool) { return resp.ParseDecimal(i.text()) }

// sameContent tells whether keys hold the same on two masters, whatever their expiry.
func sameContent(a, b image) bool { return rdb.Same(a.dump, b.dump) }

// unchangedSince tells whether one master's key is as it was some time before, its
// expiry too.
func (i image) unchangedSince(before image) bool {
	switch did := change(before, i); did {
	case keyStayedAbsent:
		return true
	default:
		return did == keyKept && near(before.expiry(), i.expiry(), expiryTolerance)
	}
}

// passing tells that the key is as good as gone: on one master it may have
// expired before the look, on another not.
func (i image) passing() bool { return i.pttl >= 0 && i.pttl <= expiryTolerance }

// lasting is the payload of a key that is there to stay; nil for the others.
func (i image) lasting() []byte {
	if i.passing() {
		return nil
	}
	return i.dump
}

// expiry is the absolute expiry in milliseconds of the master's clock, or
// noExpiry. That PTTL and TIME are read side by side is what makes it right:
// up to Redis 7.0 both run on inside MULTI, from 7.2 on both stand still.
func (i image) expiry() int64 {
	if i.pttl < 0 {
		return noExpiry
	}
	return laterBy(i.now, i.pttl)
}

// laterBy adds a TTL, which may be as large as an int64 can hold, to a time.
func laterBy(time, pttl int64) int64 {
	if pttl > math.MaxInt64-time {
		return math.MaxInt64
	}
	return time + pttl
}

// An effect is what a run did to one key.
type effect uint8

const (
	keyStayedAbsent effect = iota
	keyKept
	keyMoved // only its expiry changed
	keyCreated
	keyChanged
	keyDeleted
)

func (e effect) String() string {
	return [...]string{"stayed absent", "kept", "moved", "created", "changed", "deleted"}[e]
}

// wrote tells whether the run left the key other than it found it.
func (e effect) wrote() bool { return e >= keyMoved }

// change compares two images of one key in one transaction on one master. An
// expiry has to move by more than the transaction took, where time goes on in
// it: a master that was held up between TIME and PTTL misread it by that much.
func change(before, after image) effect {
	held := max(0, after.now-before.now)
	switch {
	case before.absent() && after.absent():
		return keyStayedAbsent
	case before.absent():
		return keyCreated
	case after.absent():
		return keyDeleted
	case !bytes.Equal(before.dump, after.dump):
		return keyChanged
	case !near(before.expiry(), after.expiry(), expiryTolerance+held):
		return keyMoved
	}
	return keyKept
}

// near compares absolute expiries, or noExpiry.
func near(a, b, tolerance int64) bool {
	if a == noExpiry || b == noExpiry {
		return a == b
	}
	return max(a, b)-min(a, b) <= tolerance
}
