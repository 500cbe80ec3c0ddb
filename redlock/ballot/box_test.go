package ballot

import (
	"strings"
	"testing"
	"unsafe"
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
