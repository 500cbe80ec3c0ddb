package rig

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"
)

// Wire is a connection that exchanges raw bytes. It sends exactly the test's bytes and
// returns exactly the server's.
type Wire struct {
	Conn   net.Conn
	In     *bufio.Reader
	Reword func(reply []byte) []byte // applied to each reply of Do; nil: replies stay as they are
}

// Dial connects to a server. With protocol 3 it sends HELLO 3 first.
func Dial(t testing.TB, addr string, protocol int) *Wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{Conn: conn, In: bufio.NewReader(conn)}
	t.Cleanup(func() { conn.Close() })
	if protocol == 3 {
		hello, err := w.Do("HELLO", "3")
		if err != nil || hello[0] != '%' {
			t.Fatalf("HELLO 3 at %s: %q %v", addr, hello, err)
		}
	}
	return w
}

// Do sends one command and returns its reply.
func (w *Wire) Do(args ...string) ([]byte, error) {
	if err := w.Send(Encode(args...)); err != nil {
		return nil, err
	}
	reply, err := w.Read()
	if w.Reword != nil {
		reply = w.Reword(reply)
	}
	return reply, err
}

func (w *Wire) Send(raw []byte) error {
	if err := w.Conn.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	_, err := w.Conn.Write(raw)
	return err
}

// Read returns the bytes of one complete top-level value.
func (w *Wire) Read() ([]byte, error) {
	if err := w.Conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return nil, err
	}
	return ReadValue(w.In, nil)
}

func ReadValue(in *bufio.Reader, raw []byte) ([]byte, error) {
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
		if raw, err = ReadValue(in, raw); err != nil {
			return raw, err
		}
	}
	return raw, nil
}

// Encode returns the bytes of a command, an array of bulk strings.
func Encode(args ...string) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		raw = fmt.Appendf(raw, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return raw
}

func SHA1(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ExpectEnd reads until the server closes the connection, and returns the bytes.
func (w *Wire) ExpectEnd(t testing.TB) []byte {
	t.Helper()
	_ = w.Conn.SetReadDeadline(time.Now().Add(Patience))
	rest, err := io.ReadAll(w.In)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("the connection does not end after %.200q: %v", rest, err)
	}
	return rest
}

// ExpectReply sends one command and requires its reply.
func (w *Wire) ExpectReply(t testing.TB, want string, args ...string) {
	t.Helper()
	if got, err := w.Do(args...); string(got) != want || err != nil {
		t.Fatalf("%q is answered %.200q (%v), want %q", args, got, err, want)
	}
}
