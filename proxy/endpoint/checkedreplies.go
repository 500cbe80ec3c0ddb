package endpoint

import (
	"net"

	"redlock-proxy/redlock/resp"
)

// maxAnswer bounds a server's reply about itself, in bytes. The longest is its table of
// commands, with a few hundred kilobytes.
const maxAnswer = 16 << 20

// checkedReplies is a server's connection for go-redis. That library allocates any
// length that a server announces and follows any nesting, so a broken server, or one
// that is no Redis, could end the whole process. It therefore reads only the bytes of
// RESP2 values within bounds.
type checkedReplies struct {
	net.Conn
	scanner resp.Scanner
	err     error // once set, nothing more is read
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
