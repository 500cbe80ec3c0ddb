package effect

import (
	"math"
	"strings"
	"testing"

	"redlock-proxy/redlock/rdb"
)

func TestChange(t *testing.T) {
	absent := Image{PTTL: NoKey, Now: 1000}
	key := func(dump string, pttl, now int64) Image { return Image{Dump: []byte(dump), PTTL: pttl, Now: now} }
	for _, row := range []struct {
		before, after Image
		want          Change
	}{
		{absent, absent, StayedAbsent},
		{absent, key("v", 100, 1000), Created},
		{key("v", 100, 1000), absent, Deleted},
		{key("v", 100, 1000), key("w", 100, 1000), Changed},
		{key("v", 100, 1000), key("w", NoExpiry, 1000), Changed},
		{key("v", 100, 1000), key("v", 100, 1000), Kept},
		{key("v", 100, 1000), key("v", 102, 1000), Kept},
		{key("v", 100, 1000), key("v", 98, 1000), Kept},
		{key("v", 100, 1000), key("v", 103, 1000), Moved},
		{key("v", 100, 1000), key("v", 97, 1000), Moved},
		// Up to Redis 7.0 time goes on inside MULTI.
		{key("v", 100, 1000), key("v", 60, 1040), Kept},
		{key("v", 100, 1000), key("v", 100, 1040), Kept},
		{key("v", 100, 1000), key("v", 103, 1040), Moved},
		{key("v", 100, 1000), key("v", 17, 1040), Moved},
		{key("v", 100, 1000), key("v", 150, 990), Moved}, // its clock was set back
		{key("v", 100, 1000), key("v", 110, 990), Kept},
		{key("v", NoExpiry, 1000), key("v", NoExpiry, 1040), Kept},
		{key("v", NoExpiry, 1000), key("v", 100, 1000), Moved},
		{key("v", 100, 1000), key("v", NoExpiry, 1000), Moved},
		{key("v", 0, 1000), key("v", NoExpiry, 1000), Moved},
		{key("v", 0, 1000), key("v", 0, 1001), Kept},
		{key("", NoExpiry, 1000), absent, Deleted},
		{key("v", math.MaxInt64-1000, 1000), key("v", math.MaxInt64-1001, 1001), Kept},
		{key("v", math.MaxInt64, 1000), key("v", math.MaxInt64, 5000), Kept},
	} {
		if got := Compare(row.before, row.after); got != row.want {
			t.Errorf("%+v then %+v: %v, want %v", row.before, row.after, got, row.want)
		}
	}
}

// Between two looks an expiry may not move at all, however long the looks are apart.
func TestUnchangedSince(t *testing.T) {
	key := func(dump string, pttl, now int64) Image { return Image{Dump: []byte(dump), PTTL: pttl, Now: now} }
	for _, row := range []struct {
		now  Image
		want bool
	}{
		{key("v", 8000, 2000), true},
		{key("v", 8002, 2000), true},
		{key("v", 8003, 2000), false},
		{key("w", 8000, 2000), false},
		{Missing, false},
	} {
		if got := row.now.UnchangedSince(key("v", 9000, 1000)); got != row.want {
			t.Errorf("%+v: %v", row.now, got)
		}
	}
}

func TestEffects(t *testing.T) {
	for e, want := range map[Change]bool{
		StayedAbsent: false,
		Kept:         false,
		Moved:        true,
		Created:      true,
		Changed:      true,
		Deleted:      true,
	} {
		if e.Wrote() != want {
			t.Errorf("%v: wrote %v", e, e.Wrote())
		}
	}
}

// The holder of a re-entrant lock is known only where nothing else can be meant.
func TestTheHolderOfAHash(t *testing.T) {
	for _, row := range []struct{ items, holder string }{
		{"uuid:thread 1", "uuid:thread"},
		{"uuid:thread 12", "uuid:thread"},
		{"owner a-token", ""},
		{"mode read uuid:thread 1", ""},
		{"uuid:1 1 uuid:2 1", ""},
	} {
		var items [][]byte
		for item := range strings.FieldsSeq(row.items) {
			items = append(items, []byte(item))
		}
		i := Image{Dump: rdb.Dump(rdb.Value{Kind: rdb.Hash, Items: items})}
		if got := string(i.Holder()); got != row.holder {
			t.Errorf("%s: %q", row.items, got)
		}
	}
	for _, i := range []Image{Missing, {Dump: rdb.Dump(rdb.Value{Kind: rdb.List, Items: [][]byte{[]byte("a"), []byte("1")}})}} {
		if i.Holder() != nil {
			t.Errorf("%+v", i)
		}
	}
}

// A key that may have ended of itself between the two looks was not deleted.
func TestAnEndOfAKeyIsNoDeletion(t *testing.T) {
	for _, row := range []struct {
		pttl, took int64 // what the key had left, and the time between the looks
		deleted    bool
	}{
		{NoExpiry, 1000, true},
		{1000, 0, true},
		{1000, 997, true},
		{1000, 998, false},
		{1000, 2000, false},
		{3, 0, true},
		{2, 0, false},
		{0, 0, false},
		{math.MaxInt64, 1000, true},
	} {
		x := Result{
			Before: []Image{{Dump: []byte("a lock"), PTTL: row.pttl, Now: 5000}},
			After:  []Image{{PTTL: NoKey, Now: 5000 + row.took}},
		}
		if x.Deleted() != row.deleted || x.DeletedKey(0) != row.deleted {
			t.Errorf("%d ms left, gone after %d ms: deleted is %v", row.pttl, row.took, x.Deleted())
		}
	}
	if (Result{Before: []Image{Missing}, After: []Image{Missing}}).Deleted() {
		t.Error("a key that was never there was deleted")
	}
}
