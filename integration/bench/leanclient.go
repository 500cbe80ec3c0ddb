package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// leanClient is a client with as little work of its own as possible, so that the bench
// measures the server. One goroutine may use it.
type leanClient struct {
	conn    net.Conn
	reader  *bufio.Reader
	request []byte
	reply   []byte
	until   time.Time // conn's deadline

	script string // the script of release; "": a plain DEL
	sha    string
	token  string
}

func dialLean(addr string) (*leanClient, error) {
	conn, err := new(net.Dialer).DialContext(running, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &leanClient{conn: conn, reader: bufio.NewReaderSize(conn, 1<<10)}, nil
}

func (c *leanClient) close() { _ = c.conn.Close() }

// do sends one command and returns its reply: the line of a simple reply without its type,
// the content of a bulk string, nil for a null. The reply is valid until the next call. do
// cannot read arrays.
func (c *leanClient) do(args ...string) ([]byte, error) {
	c.queue(args...)
	if err := c.flush(); err != nil {
		return nil, err
	}
	return c.read()
}

// queue appends a command to those that flush sends.
func (c *leanClient) queue(args ...string) {
	c.request = append(strconv.AppendInt(append(c.request, '*'), int64(len(args)), 10), '\r', '\n')
	for _, arg := range args {
		c.request = append(strconv.AppendInt(append(c.request, '$'), int64(len(arg)), 10), '\r', '\n')
		c.request = append(append(c.request, arg...), '\r', '\n')
	}
}

func (c *leanClient) flush() error {
	if now := time.Now(); c.until.Sub(now) < patience {
		c.until = now.Add(2 * patience)
		if err := c.conn.SetDeadline(c.until); err != nil {
			return err
		}
	}
	_, err := c.conn.Write(c.request)
	c.request = c.request[:0]
	return err
}

// errorReply is an error reply of the server.
type errorReply string

func (e errorReply) Error() string { return string(e) }

func (c *leanClient) read() ([]byte, error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("reply %q", line)
	}
	kind, line := line[0], line[1:len(line)-2]
	switch kind {
	case '+', ':':
		return line, nil
	case '-':
		return nil, errorReply(line)
	case '_':
		return nil, nil
	case '$':
		length, err := strconv.Atoi(string(line))
		if err != nil || length < 0 {
			return nil, err
		}
		if cap(c.reply) < length+2 {
			c.reply = make([]byte, length+2)
		}
		c.reply = c.reply[:length+2]
		_, err = io.ReadFull(c.reader, c.reply)
		return c.reply[:length], err
	}
	return nil, fmt.Errorf("reply of type %q", kind)
}

const (
	lockTTL = time.Minute

	// compareAndDelete is the script that every lock library has in some form.
	compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`
	// disguisedDelete does the same, but a proxy cannot know that from its text.
	disguisedDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call(string.lower("DEL"),KEYS[1]) else return 0 end`
)

// lockWith makes release run this script.
func (c *leanClient) lockWith(script string) error {
	c.script = script
	c.sha = scriptSHA(script)
	if script == "" {
		return nil
	}
	_, err := c.do("SCRIPT", "LOAD", script)
	return err
}

func scriptSHA(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

var tokens atomic.Int64

func nextToken() string { return fmt.Sprintf("token-%018d", tokens.Add(1)) }

// acquire implements lockClient.
func (c *leanClient) acquire(key string) (bool, error) {
	c.token = nextToken()
	reply, err := c.do("SET", key, c.token, "NX", "PX", ttlText)
	return string(reply) == "OK", err
}

var ttlText = strconv.FormatInt(lockTTL.Milliseconds(), 10)

var errNotReleased = errors.New("the lock was not released: it was not held")

// release implements lockClient.
func (c *leanClient) release(key string) error {
	var reply []byte
	var err error
	if c.script == "" {
		reply, err = c.do("DEL", key)
	} else {
		reply, err = c.do("EVALSHA", c.sha, "1", key, c.token)
	}
	if err == nil && string(reply) != "1" {
		err = errNotReleased
	}
	return err
}
