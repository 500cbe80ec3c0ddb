package redlock

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

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

// A greeting is what a server says of itself when a connection begins.
type greeting struct {
	identity
	problem string // why it can be no lock master; empty if it can
	replication
	sole bool // ROLE says that it is a master that has never replicated
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
func connect(ctx context.Context, server *Master, h handshake) (*connection, error) {
	conn, err := server.Dial(ctx)
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
func (c *connection) introduce(server *Master, h handshake) error {
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
	case server.Embedded:
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
func (h handshake) questions(server *Master) (commands [][]string) {
	ask := func(args ...string) { commands = append(commands, args) }
	switch {
	case server.Username != "":
		ask("AUTH", server.Username, server.Password)
	case server.Password != "":
		ask("AUTH", server.Password)
	}
	if h.db != 0 {
		ask("SELECT", strconv.Itoa(h.db))
	}
	switch {
	case server.Embedded:
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
		identity:    identity{clientID: strconv.FormatInt(id, 10), runID: infoField(server, "run_id")},
		replication: readReplication(info),
	}
	g.sole = bytes.Equal(replies[3], roleOfSole) && isSole(info, g.replication)
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

func infoField(info []byte, name string) string {
	for line := range bytes.Lines(info) {
		if v, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}
