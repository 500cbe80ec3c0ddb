package redlock

import (
	"redlock-proxy/redlock/toymaster"
	"testing"
	"time"
)

func TestRealMastersGiveTokens(t *testing.T) {
	set := startLiveSet(t, 3)
	for db := range 2 {
		lock := AcquireRequest{DB: db, Key: []byte(key), Value: []byte(tokenA), TTL: time.Minute}
		if o := set.Acquire(t.Context(), lock); o.Verdict != Won {
			t.Fatalf("%+v", o)
		}
	}
	before := time.Now().Add(-time.Minute).UnixMilli()
	for n := range 6 {
		o := tokenOf(t, set.Locker, n%2, tokenA)
		if o.Verdict != Won || o.Number <= before {
			t.Fatalf("after %d: %+v", before, o)
		}
		before = o.Number
	}
	if o := tokenOf(t, set.Locker, 0, tokenB); o.Verdict != Lost || o.Err != "" {
		t.Errorf("for another value: %+v", o)
	}
	for _, m := range set.masters {
		m.must("DEL", key)
		m.must("HSET", key, "field", tokenA)
	}
	if o := tokenOf(t, set.Locker, 0, tokenA); o.Verdict != Lost || o.Err != toymaster.WrongType {
		t.Errorf("for a lock that is no string: %+v", o)
	}
}
