package ballot

import (
	"log/slog"
	"strings"
	"testing"
	"time"
	"unsafe"

	"redlock-proxy/redlock/master"
)

// A key that is kept does not keep a large value.
func TestALargeValueIsCopiedApart(t *testing.T) {
	for _, row := range []struct {
		size     int
		together bool
	}{{0, true}, {UsualFrames - 1, true}, {UsualFrames, false}, {1 << 20, false}} {
		value := strings.Repeat("v", row.size)
		k, v := Copies([]byte("k"), []byte(value))
		if k != "k" || v != value {
			t.Errorf("%d bytes: %q and %d bytes", row.size, k, len(v))
		}
		after := unsafe.Pointer(unsafe.StringData(v)) == unsafe.Add(unsafe.Pointer(unsafe.StringData(k)), 1)
		if row.size > 0 && after != row.together {
			t.Errorf("%d bytes: in one piece is %v", row.size, after)
		}
	}
}

// deaf is an Observer of masters, and there are none.
type deaf struct{ master.Observer }

// A win that comes after the validity of its TTL is none. What is no win stays what it is.
func TestAWinThatComesTooLateIsLost(t *testing.T) {
	x := New(master.New(t.Context(), master.Options{Observer: deaf{}, Log: slog.New(slog.DiscardHandler)}), nil, nil)
	for _, row := range []struct {
		v       Verdict
		elapsed time.Duration
		want    Verdict
	}{
		{Won, 0, Won}, {Won, time.Second, Lost}, {Lost, time.Second, Lost}, {NoQuorum, time.Second, NoQuorum}, {Pending, time.Second, Pending},
	} {
		if got := x.InTime(row.v, time.Second, row.elapsed); got != row.want {
			t.Errorf("%v after %v: %v", row.v, row.elapsed, got)
		}
	}
}
