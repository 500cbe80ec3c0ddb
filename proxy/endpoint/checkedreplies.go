package endpoint

import (
	"net"

	"redlock-proxy/redlock/resp"
)

// maxAnswer bounds what a server says when it is asked what it is; the longest
// is its table of commands, of a few hundred kilobytes.
const maxAnswer = 16 << 20

// checkedReplies is a server's connection for go-redis. That library makes room
// for whatever length a server announces and follows it to any depth, and would
// take the whole process with it when a server is broken, or is none: so it gets
// to see no bytes but those of RESP2 values that keep within bounds.
type checkedReplies struct {
	net.Conn
	scanner resp.Scanner
	err     error // nothing is read any more
}

func checkReplies(conn net.Conn) net.Conn {
	return &checkedReplies{Conn: conn, scanner: resp.Scanner{MaxBytes: maxAnswer, RESP2: true}}
}

func (c *checkedReplies) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		var used int
		if used, _, c.err = c.scanner.Scan(rest); c.err != nil {
			return 0, c.err
		}
		rest = rest[used:]
	}
	return n, err
}
