package wire

// Version is the version of the protocol on a connection. Every connection begins with
// RESP2.
type Version uint8

const (
	RESP2 Version = iota
	RESP3
)

// Number returns the version as in HELLO: 2 or 3.
func (v Version) Number() int { return 2 + int(v) }
