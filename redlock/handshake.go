package redlock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/redlock/resp"
)

// How every connection to a master begins.

// A handshake is what a connection is opened for.
type handshake struct {
	db int // it is for commands in this database
	// pushes asks for RESP3 in place of who the server is: the connection is for
	// what the server tells by itself.
	pushes bool
}

// A connection is one that a server has answered the handshake on.
type connection struct {
	net.Conn
	reader *resp.Reader
	greeting
	noPushes []byte // how HELLO 3 was refused; nil: it was not, or not asked
}

// A serverAddress is how a server is reached.
type serverAddress struct {
	dial     func(ctx context.Context) (net.Conn, error)
	username string
	password string
	embedded bool // it is inside this process, and has no more than its keys
}

// A greeting is what a server says of itself when a connection begins.
type greeting struct {
	identity
	problem string // why it can be no lock master; empty if it can
	info    []byte // INFO replication
	sole    bool   // ROLE is enough to ask of its replication
}

// identity tells a connection from all others of its server, so that its
// successor can make sure that nothing sent on it is executed any more.
type identity struct {
	clientID string
	runID    string
}

// maxGreeting bounds what a server says before it is known to be a master.
const maxGreeting = 1 << 20

// connect dials a server, authenticates, and asks what the handshake is about, all
// until ctx ends. The reader holds at most maxGreeting bytes until it is allowed
// more.
func connect(ctx context.Context, server serverAddress, h handshake) (*connection, error) {
	conn, err := server.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	c := &connection{Conn: conn, reader: resp.NewReader(conn, 16<<10, maxGreeting)}
	err = c.introduce(server, h)
	if err != nil || !stop() {
		conn.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return c, nil
}

// introduce authenticates, asks, and reads the answers.
func (c *connection) introduce(server serverAddress, h handshake) error {
	questions := h.questions(server)
	var out []byte
	for _, q := range questions {
		out = resp.AppendCommand(out, q...)
	}
	_, failed := c.Write(out)
	// A server that takes no more clients says so and ends the connection, perhaps
	// before it was asked.
	ended := errors.Join(failed, c.reader.Fetch(len(questions)))
	defer c.reader.Discard()
	replies := c.reader.Fetched(nil)
	for i, reply := range replies {
		if resp.IsError(reply) && !mayRefuse(questions[i][0], reply) {
			return turnedAway(questions[i][0], reply)
		}
	}
	switch last := len(replies) - 1; {
	case ended != nil:
		return ended
	case server.embedded:
	case h.pushes && resp.IsError(replies[last]):
		c.noPushes = slices.Clone(replies[last])
	case !h.pushes:
		c.greeting = readGreeting(replies[last-3:])
	}
	return nil
}

// mayRefuse tells whether the connection is of use although the server refuses a
// command.
func mayRefuse(command string, reply []byte) bool {
	return command == "ROLE" || command == "HELLO" && !resp.CannotServe(reply)
}

// questions are the commands of a handshake, AUTH first.
func (h handshake) questions(server serverAddress) (commands [][]string) {
	ask := func(args ...string) { commands = append(commands, args) }
	switch {
	case server.username != "":
		ask("AUTH", server.username, server.password)
	case server.password != "":
		ask("AUTH", server.password)
	}
	if h.db != 0 {
		ask("SELECT", strconv.Itoa(h.db))
	}
	switch {
	case server.embedded:
		ask("PING") // it cannot track keys, and needs no RESP3
	case h.pushes:
		ask("HELLO", "3")
	default:
		ask("CLIENT", "ID")
		ask("INFO", "server")
		ask("INFO", "replication")
		ask("ROLE")
	}
	return commands
}

// readGreeting reads the answers to CLIENT ID, INFO server, INFO replication and
// ROLE.
func readGreeting(replies [][]byte) greeting {
	id, _ := resp.ParseInteger(replies[0])
	server, _ := resp.ParseBulk(replies[1])
	info, _ := resp.ParseBulk(replies[2])
	g := greeting{
		identity: identity{clientID: strconv.FormatInt(id, 10), runID: infoField(server, "run_id")},
		info:     bytes.Clone(info),
		sole:     bytes.Equal(replies[3], roleOfSole) && isSole(info),
	}
	switch mode := infoField(server, "redis_mode"); {
	case g.runID == "":
		g.problem = "it does not say its run_id in INFO server"
	case mode == "cluster":
		g.problem = "it runs in cluster mode"
	case mode == "sentinel":
		g.problem = "it is a Sentinel"
	}
	return g
}

// A sole master answers ROLE like this: it is a master, without replicas, and
// nothing was ever replicated.
var roleOfSole = []byte("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")

// isSole tells whether ROLE is enough to ask of a server that answers INFO
// replication like this.
func isSole(info []byte) bool {
	return infoField(info, "role") == "master" && infoField(info, "connected_slaves") == "0" &&
		infoField(info, "master_repl_offset") == "0" && strings.Trim(infoField(info, "master_replid2"), "0") == ""
}

// infoField is what INFO says under a name; empty if nothing.
func infoField(info []byte, name string) string {
	for line := range bytes.Lines(info) {
		if v, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// authRefusals are how servers begin an error reply to AUTH, or to the connection
// that it is the first command of.
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

// turnedAway words an error reply to a command with which a connection begins.
// That to AUTH may repeat what was sent, so of it only words of ours are said.
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
