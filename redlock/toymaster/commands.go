package toymaster

import (
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/redlock/resp"
)

// execute executes one command. It returns false if the session had ended before.
func (m *Master) execute(s *Session, args [][]byte) ([]byte, bool) {
	if s.killed || m.Away {
		return nil, false
	}
	reply := m.dispatch(s, args)
	if m.Watch != nil {
		m.Watch(Execution{At: time.Now(), Master: m.Name, Client: s.conn.Link.Name, Conn: s.conn, Args: args, Reply: reply})
	}
	return reply, true
}

func (m *Master) dispatch(s *Session, args [][]byte) []byte {
	name := strings.ToUpper(string(args[0]))
	switch name {
	case "MULTI":
		s.queued, s.dirty = [][][]byte{}, false
		return replyOK
	case "EXEC":
		return m.exec(s)
	case "HELLO":
		s.resp3 = string(args[1]) == "3"
		return resp.AppendCommand(nil, "server", "redis", "proto", string(args[1]))
	}
	command := commands[name]
	switch {
	case command == nil:
		s.dirty = true
		return replyError("ERR unknown command '%s', with args beginning with: ", args[0])
	case len(args) < command.arity:
		s.dirty = true
		return replyError("ERR wrong number of arguments for '%s' command", strings.ToLower(name))
	case m.refuses(command) || s.queued != nil && strings.HasPrefix(m.refusal, "OOM"): // a queue may need any memory
		s.dirty = true
		return replyError("%s", m.refusal)
	case s.queued != nil:
		s.queued = append(s.queued, args)
		return []byte("+QUEUED\r\n")
	}
	return command.run(m, s, args)
}

func (m *Master) exec(s *Session) []byte {
	queued := s.queued
	s.queued = nil
	changed := m.sawChange(s)
	if queued == nil {
		return replyError("ERR EXEC without MULTI")
	}
	if s.dirty {
		return replyError("EXECABORT Transaction discarded because of previous errors.")
	}
	if changed {
		return []byte("*-1\r\n")
	}
	reply := resp.AppendArray(nil, len(queued))
	for i, args := range queued {
		if i == len(queued)-1 {
			m.Clock.offset += m.misread
			defer func(was time.Duration) { m.Clock.offset -= was }(m.misread)
		}
		reply = append(reply, commands[strings.ToUpper(string(args[0]))].run(m, s, args)...)
	}
	return reply
}

// A command turns arguments into a reply. The caller holds master.mu.
type command struct {
	arity  int // the fewest arguments, including the name
	access access
	run    func(m *Master, s *Session, args [][]byte) []byte
}

// An access is what a command does to keys.
type access uint8

const (
	noKeys access = iota
	runs          // a script, whose commands do more
	reads
	writes
	grows // it writes what may need memory
)

// refuses tells whether the master answers a command with its refusal. As Redis does, it refuses only writes, and PING,
// if it cannot save, and only what needs memory if that is full.
func (m *Master) refuses(c *command) bool {
	switch code, _, _ := strings.Cut(m.refusal, " "); code {
	case "":
		return false
	case "MISCONF":
		return c.access >= writes || c == commands["PING"]
	case "OOM":
		return c.access == grows
	}
	return c.access != noKeys
}

var commands map[string]*command

func init() {
	commands = map[string]*command{
		"PING":   {1, noKeys, func(*Master, *Session, [][]byte) []byte { return []byte("+PONG\r\n") }},
		"SELECT": {2, noKeys, (*Master).selectDB},
		"CLIENT": {2, noKeys, (*Master).clientCommand},
		"INFO":   {1, noKeys, (*Master).info},
		"SCAN":   {2, noKeys, (*Master).scan},
		"ROLE":   {1, noKeys, (*Master).role},
		"SCRIPT": {2, noKeys, (*Master).scriptCommand},
		"TIME":   {1, noKeys, (*Master).time},
		"SET":    {3, grows, (*Master).set},
		"GET":    {2, reads, (*Master).get},
		"GETRANGE": {4, reads, func(m *Master, s *Session, args [][]byte) []byte {
			e, _ := m.Find(s.db, args[1])
			if e.IsList {
				return replyError("%s", WrongType)
			}
			return resp.AppendBulk(nil, e.Value[:min(int64(len(e.Value)), number(args[3])+1)])
		}},
		"INCR":    {2, grows, (*Master).incr},
		"HINCRBY": {4, grows, (*Master).hincrby},
		"ZINCRBY": {4, grows, (*Master).zincrby},
		"GETSET":  {3, grows, (*Master).getset},
		"EXISTS":  {2, reads, (*Master).exists},
		"DEL":     {2, writes, (*Master).del},
		"PEXPIRE": {3, writes, (*Master).pexpire},
		"PERSIST": {2, writes, (*Master).persist},
		"DUMP":    {2, reads, (*Master).dump},
		"RESTORE": {4, grows, (*Master).restore},
		"WATCH":   {2, reads, (*Master).watchKeys},
		"UNWATCH": {1, noKeys, (*Master).unwatch},
		"EVAL":    {3, runs, (*Master).eval},
		"EVALSHA": {3, runs, (*Master).evalsha},
		"STRLEN": {2, reads, func(m *Master, s *Session, args [][]byte) []byte {
			e, _ := m.Find(s.db, args[1])
			return ReplyInteger(int64(len(e.Value)))
		}},
		"TYPE": {2, reads, func(m *Master, s *Session, args [][]byte) []byte {
			switch e, ok := m.Find(s.db, args[1]); {
			case !ok:
				return []byte("+none\r\n")
			case e.IsList:
				return []byte("+list\r\n")
			}
			return []byte("+string\r\n")
		}},
		"PTTL": {2, reads, func(m *Master, s *Session, args [][]byte) []byte {
			return m.pttl(s.db, args[1])
		}},
	}
}

var (
	replyOK  = []byte("+OK\r\n")
	replyNil = []byte("$-1\r\n")
)

func ReplyInteger(n int64) []byte { return []byte(":" + string(resp.Decimal(n)) + "\r\n") }

func replyBool(b bool) []byte {
	if b {
		return ReplyInteger(1)
	}
	return ReplyInteger(0)
}

func replyError(format string, args ...any) []byte {
	return append(fmt.Appendf([]byte{'-'}, format, args...), "\r\n"...)
}

// Find returns a key that has not expired.
func (m *Master) Find(db int, key []byte) (Entry, bool) {
	e, ok := m.DBs[db][string(key)]
	if ok && e.Expires != 0 && m.Millis() > e.Expires {
		delete(m.DBs[db], string(key))
		return Entry{}, false
	}
	return e, ok
}

func (m *Master) Store(db int, key []byte, e Entry) {
	if m.DBs[db] == nil {
		m.DBs[db] = map[string]Entry{}
	}
	m.DBs[db][string(key)] = e
	if m.Backlog {
		m.Offset++
	}
}

func (m *Master) read(db int, key []byte) []byte {
	if e, ok := m.Find(db, key); ok {
		return resp.AppendBulk(nil, e.Value)
	}
	return replyNil
}

func (m *Master) pttl(db int, key []byte) []byte {
	e, ok := m.Find(db, key)
	switch {
	case !ok:
		return ReplyInteger(-2)
	case e.Expires == 0:
		return ReplyInteger(-1)
	}
	return ReplyInteger(e.Expires - m.Millis())
}

func (m *Master) selectDB(s *Session, args [][]byte) []byte {
	db, err := strconv.Atoi(string(args[1]))
	if err != nil || db < 0 || db >= m.Databases {
		return replyError("ERR DB index is out of range")
	}
	s.db = db
	return replyOK
}

func (m *Master) clientCommand(s *Session, args [][]byte) []byte {
	switch strings.ToUpper(string(args[1])) {
	case "ID":
		return ReplyInteger(s.ID)
	case "KILL":
		id, _ := strconv.ParseInt(string(args[3]), 10, 64)
		return replyBool(m.disconnect(id))
	}
	return replyError("ERR unknown subcommand '%s'. Try CLIENT HELP.", args[1])
}

// keyspace is the part of INFO about the databases.
func (m *Master) keyspace() string {
	text := "# Keyspace\r\n"
	for _, db := range slices.Sorted(maps.Keys(m.DBs)) {
		text += fmt.Sprintf("db%d:keys=%d,expires=0,avg_ttl=0\r\n", db, len(m.DBs[db]))
	}
	return text
}

func (m *Master) info(_ *Session, args [][]byte) []byte {
	text := fmt.Sprintf("# Server\r\nredis_version:7.0.15\r\nrun_id:%s\r\n# Replication\r\n%s\r\n%s", m.runID(), m.replication(), m.memory())
	if len(args) == 1 { // nobody reads it from a section's INFO
		text += m.keyspace()
	}
	return resp.AppendBulk(nil, text)
}

// scan returns all keys at once.
func (m *Master) scan(s *Session, _ [][]byte) []byte {
	keys := slices.Sorted(maps.Keys(m.DBs[s.db]))
	return append(resp.AppendBulk(resp.AppendArray(nil, 2), "0"), resp.AppendCommand(nil, keys...)...)
}

func (m *Master) role(*Session, [][]byte) []byte {
	switch {
	case m.NoRole:
		return replyError("NOPERM this user has no permissions to run the 'role' command")
	case m.replica:
		return fmt.Appendf(nil, "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:%d\r\n", m.Offset)
	}
	return fmt.Appendf(nil, "*3\r\n$6\r\nmaster\r\n:%d\r\n*0\r\n", m.Offset)
}

func (m *Master) scriptCommand(_ *Session, args [][]byte) []byte {
	sha := fmt.Sprintf("%x", sha1.Sum(args[2]))
	m.Scripts[sha] = string(args[2])
	return resp.AppendBulk(nil, sha)
}

func (m *Master) time(*Session, [][]byte) []byte {
	now := m.Clock.now()
	return resp.AppendCommand(nil, strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
}
