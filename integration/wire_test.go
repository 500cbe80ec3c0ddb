package integration

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"
)

// wire is a connection that speaks bytes: what goes out is what the test
// wrote, what comes in is kept as it came.
type wire struct {
	conn   net.Conn
	in     *bufio.Reader
	reword func(reply []byte) []byte // nil: replies are taken as they come
}

// dialWire connects to a server; protocol 3 says HELLO 3 first.
func dialWire(t testing.TB, addr string, protocol int) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{conn: conn, in: bufio.NewReader(conn)}
	t.Cleanup(func() { conn.Close() })
	if protocol == 3 {
		hello, err := w.do("HELLO", "3")
		if err != nil || hello[0] != '%' {
			t.Fatalf("HELLO 3 at %s: %q %v", addr, hello, err)
		}
	}
	return w
}

// do sends one command and returns its one reply.
func (w *wire) do(args ...string) ([]byte, error) {
	if err := w.send(encode(args...)); err != nil {
		return nil, err
	}
	reply, err := w.read()
	if w.reword != nil {
		reply = w.reword(reply)
	}
	return reply, err
}

func (w *wire) send(raw []byte) error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := w.conn.Write(raw)
	return err
}

// read returns the bytes of one whole top-level value.
func (w *wire) read() ([]byte, error) {
	if err := w.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return readValue(w.in, nil)
}

func readValue(in *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	raw = append(raw, line...)
	if err != nil {
		return raw, err
	}
	if len(line) < 3 {
		return raw, fmt.Errorf("bad line %q", line)
	}
	kind, text := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return raw, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil {
		return raw, fmt.Errorf("bad length in %q", line)
	}
	switch kind {
	case '$', '=', '!':
		if size < 0 {
			return raw, nil
		}
		payload := make([]byte, size+2)
		_, err := io.ReadFull(in, payload)
		return append(raw, payload...), err
	case '%', '|':
		size *= 2
	case '*', '~', '>':
	default:
		return raw, fmt.Errorf("unknown kind of value %q", line)
	}
	if kind == '|' {
		size++ // an attribute comes before the value it belongs to
	}
	for range size {
		if raw, err = readValue(in, raw); err != nil {
			return raw, err
		}
	}
	return raw, nil
}

// encode writes a command as clients do.
func encode(args ...string) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		raw = fmt.Appendf(raw, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return raw
}

func sha1Hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
