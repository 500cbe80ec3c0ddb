package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

// This file begins every connection to a master.

// A Handshake says what a connection is for.
type Handshake struct {
	DB int // database of the commands
	// Pushes asks for RESP3, and not for who the server is. The connection is for pushes
	// from the server.
	Pushes bool
	Loop   *loop.Loop // of the task that connects; may be nil
}

// A Connection is a connection whose handshake has succeeded.
type Connection struct {
	net.Conn
	Reader *resp.Reader
	Greeting
	NoPushes []byte // the error reply to HELLO 3; nil if it was accepted or not sent
}

// A Server says how to reach a server.
type Server struct {
	Dial     func(ctx context.Context) (net.Conn, error)
	Username string
	Password string
	Embedded bool // it runs inside this process, and has nothing but keys
}

// A Greeting is what a server says about itself when a connection begins.
type Greeting struct {
	identity
	Problem string // why it cannot be a lock master; empty if it can
	Info    []byte // INFO replication
	Sole    bool   // ROLE is enough to check its replication
}

// An identity distinguishes a connection from all others of its server. The next
// connection kills it by its identity, so that the server executes nothing more of it.
type identity struct {
	ClientID string
	RunID    string
}

// maxGreeting bounds the bytes that a server may send during the handshake.
const maxGreeting = 1 << 20

// Connect dials a server, authenticates, and asks the questions of the handshake. It
// fails if ctx ends before that. Its reader holds at most maxGreeting bytes until the
// caller sets a higher limit. The caller closes the Connection.
func Connect(ctx context.Context, server Server, h Handshake) (*Connection, error) {
	conn, err := server.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := h.Loop.OnEnd(ctx, func() { conn.Close() })
	c := &Connection{Conn: conn, Reader: resp.NewReader(conn, 16<<10, maxGreeting)}
	err = c.introduce(server, h)
	if err != nil || !stop() {
		conn.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return c, nil
}

// introduce authenticates, asks, and reads the answers.
func (c *Connection) introduce(server Server, h Handshake) error {
	questions := h.questions(server)
	var out []byte
	for _, q := range questions {
		out = resp.AppendCommand(out, q...)
	}
	_, failed := c.Write(out)
	// A server with too many clients sends an error and ends the connection, perhaps
	// before it reads a question.
	ended := errors.Join(failed, c.Reader.Fetch(len(questions)))
	defer c.Reader.Discard()
	replies := c.Reader.Fetched(nil)
	for i, reply := range replies {
		if resp.IsError(reply) && !mayRefuse(questions[i][0], reply) {
			return turnedAway(questions[i][0], reply)
		}
	}
	switch last := len(replies) - 1; {
	case ended != nil:
		return ended
	case server.Embedded:
	case h.Pushes && resp.IsError(replies[last]):
		c.NoPushes = slices.Clone(replies[last])
	case !h.Pushes:
		c.Greeting = readGreeting(replies[last-3:])
	}
	return nil
}

// mayRefuse tells whether the connection is useful although the server refuses command.
func mayRefuse(command string, reply []byte) bool {
	return command == "ROLE" || command == "HELLO" && !resp.CannotServe(reply)
}

// questions returns the commands of a handshake, AUTH first.
func (h Handshake) questions(server Server) (commands [][]string) {
	ask := func(args ...string) { commands = append(commands, args) }
	switch {
	case server.Username != "":
		ask("AUTH", server.Username, server.Password)
	case server.Password != "":
		ask("AUTH", server.Password)
	}
	if h.DB != 0 {
		ask("SELECT", strconv.Itoa(h.DB))
	}
	switch {
	case server.Embedded:
		ask("PING") // an embedded server cannot track keys, and needs no RESP3
	case h.Pushes:
		ask("HELLO", "3")
	default:
		ask("CLIENT", "ID")
		ask("INFO", "server")
		ask("INFO", "replication")
		ask("ROLE")
	}
	return commands
}

// readGreeting reads the answers to CLIENT ID, INFO server, INFO replication and ROLE.
func readGreeting(replies [][]byte) Greeting {
	id, _ := resp.ParseInteger(replies[0])
	server, _ := resp.ParseBulk(replies[1])
	info, _ := resp.ParseBulk(replies[2])
	g := Greeting{
		identity: identity{ClientID: strconv.FormatInt(id, 10), RunID: InfoField(server, "run_id")},
		Info:     bytes.Clone(info),
		Sole:     bytes.Equal(replies[3], roleOfSole) && isSole(info),
	}
	switch mode := InfoField(server, "redis_mode"); {
	case g.RunID == "":
		g.Problem = "it does not say its run_id in INFO server"
	case mode == "cluster":
		g.Problem = "it runs in cluster mode"
	case mode == "sentinel":
		g.Problem = "it is a Sentinel"
	}
	return g
}

// roleOfSole is the answer to ROLE of a master that has no replicas and never replicated
// anything.
var roleOfSole = []byte("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")

// isSole tells whether ROLE is enough to check the replication of a server with this INFO
// replication.
func isSole(info []byte) bool {
	return InfoField(info, "role") == "master" && InfoField(info, "connected_slaves") == "0" &&
		InfoField(info, "master_repl_offset") == "0" && strings.Trim(InfoField(info, "master_replid2"), "0") == ""
}

// InfoField returns the value of a field of INFO. It returns "" if there is none.
func InfoField(info []byte, name string) string {
	for line := range bytes.Lines(info) {
		if v, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// authRefusals are known beginnings of an error reply to AUTH, or to a connection whose
// first command is AUTH.
var authRefusals = []string{
	"WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "LOADING",
	"ERR max number of clients reached",
	"ERR AUTH <password> called without any password configured for the default user",
	"ERR Client sent AUTH, but no password is set",
	"ERR invalid password",
	"ERR unknown command",
	"ERR wrong number of arguments",
	"ERR",
}

// turnedAway makes an error from the error reply to a command of the handshake. A reply
// to AUTH may repeat the password. So turnedAway quotes only its known beginnings.
func turnedAway(command string, reply []byte) error {
	answer := resp.ErrorText(reply)
	if command == "AUTH" {
		known := slices.IndexFunc(authRefusals, func(words string) bool { return strings.HasPrefix(answer, words) })
		if known < 0 {
			return errors.New("AUTH refused")
		}
		answer = authRefusals[known]
	}
	return fmt.Errorf("%s refused: %s", command, answer)
}
