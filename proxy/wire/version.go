package wire

// A Version is the protocol that one end of a connection speaks. Every
// connection begins with RESP2.
type Version uint8

const (
	RESP2 Version = iota
	RESP3
)

// Number is the version as HELLO takes and tells it.
func (v Version) Number() int { return 2 + int(v) }
