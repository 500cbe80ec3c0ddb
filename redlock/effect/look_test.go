package effect

import (
	"bytes"
	"testing"

	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
)

// look takes an image of a key by itself. One for which the server was held up
// on the way is taken again, as its expiry cannot be told to the millisecond.
func look(t *testing.T, c *livetest.Conn, key string) Image {
	t.Helper()
	for e := (&Examination{Keys: [][]byte{[]byte(key)}}); ; {
		x, err := e.Parse(c.Ask(e.Append(nil, 0), e.Replies()))
		if err != nil || x.Failed {
			t.Fatalf("no image of %s: %v", key, err)
		}
		if x.After[0].Now-x.Before[0].Now <= 1 {
			return x.Before[0]
		}
	}
}

// sameImage compares images by what they say, not by when they were taken.
func sameImage(a, b Image) bool {
	return bytes.Equal(a.Dump, b.Dump) && a.Absent() == b.Absent() && Near(a.Expiry(), b.Expiry(), resp.ExpiryTolerance)
}
