package redlock

import (
	"math"
	"testing"
)

func TestChange(t *testing.T) {
	absent := image{pttl: noKey, now: 1000}
	key := func(dump string, pttl, now int64) image { return image{dump: []byte(dump), pttl: pttl, now: now} }
	for _, row := range []struct {
		before, after image
		want          effect
	}{
		{absent, absent, keyStayedAbsent},
		{absent, key("v", 100, 1000), keyCreated},
		{key("v", 100, 1000), absent, keyDeleted},
		{key("v", 100, 1000), key("w", 100, 1000), keyChanged},
		{key("v", 100, 1000), key("w", noExpiry, 1000), keyChanged},
		{key("v", 100, 1000), key("v", 100, 1000), keyKept},
		{key("v", 100, 1000), key("v", 102, 1000), keyKept},
		{key("v", 100, 1000), key("v", 98, 1000), keyKept},
		{key("v", 100, 1000), key("v", 103, 1000), keyMoved},
		{key("v", 100, 1000), key("v", 97, 1000), keyMoved},
		// Up to Redis 7.0 time goes on inside MULTI.
		{key("v", 100, 1000), key("v", 60, 1040), keyKept},
		{key("v", 100, 1000), key("v", 100, 1040), keyKept},
		{key("v", 100, 1000), key("v", 103, 1040), keyMoved},
		{key("v", 100, 1000), key("v", 17, 1040), keyMoved},
		{key("v", 100, 1000), key("v", 150, 990), keyMoved}, // its clock was set back
		{key("v", noExpiry, 1000), key("v", noExpiry, 1040), keyKept},
		{key("v", noExpiry, 1000), key("v", 100, 1000), keyMoved},
		{key("v", 100, 1000), key("v", noExpiry, 1000), keyMoved},
		{key("v", 0, 1000), key("v", noExpiry, 1000), keyMoved},
		{key("v", 0, 1000), key("v", 0, 1001), keyKept},
		{key("", noExpiry, 1000), absent, keyDeleted},
		{key("v", math.MaxInt64-1000, 1000), key("v", math.MaxInt64-1001, 1001), keyKept},
		{key("v", math.MaxInt64, 1000), key("v", math.MaxInt64, 5000), keyKept},
	} {
		if got := change(row.before, row.after); got != row.want {
			t.Errorf("%+v then %+v: %v, want %v", row.before, row.after, got, row.want)
		}
	}
}

func TestEffects(t *testing.T) {
	for e, want := range map[effect]bool{
		keyStayedAbsent: false,
		keyKept:         false,
		keyMoved:        true,
		keyCreated:      true,
		keyChanged:      true,
		keyDeleted:      true,
	} {
		if e.wrote() != want {
			t.Errorf("%v: wrote %v", e, e.wrote())
		}
	}
}
