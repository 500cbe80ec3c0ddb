package redlock

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// execute executes one command. It returns false if the session had ended before.
func (m *fakeMaster) execute(s *fakeSession, args [][]byte) ([]byte, bool) {
	if s.killed || m.away {
		return nil, false
	}
	reply := m.dispatch(s, args)
	if m.watch != nil {
		m.watch(execution{at: time.Now(), master: m.name, client: s.conn.link.name, conn: s.conn, probes: s.isProbe(args), args: args, reply: reply})
	}
	return reply, true
}

func (m *fakeMaster) dispatch(s *fakeSession, args [][]byte) []byte {
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
	command := fakeCommands[name]
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

func (m *fakeMaster) exec(s *fakeSession) []byte {
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
			m.clock.offset += m.misread
			defer func(was time.Duration) { m.clock.offset -= was }(m.misread)
		}
		reply = append(reply, fakeCommands[strings.ToUpper(string(args[0]))].run(m, s, args)...)
	}
	return reply
}

// A fakeCommand turns arguments into a reply. The caller holds master.mu.
type fakeCommand struct {
	arity  int // the fewest arguments, including the name
	access access
	run    func(m *fakeMaster, s *fakeSession, args [][]byte) []byte
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
func (m *fakeMaster) refuses(c *fakeCommand) bool {
	switch code, _, _ := strings.Cut(m.refusal, " "); code {
	case "":
		return false
	case "MISCONF":
		return c.access >= writes || c == fakeCommands["PING"]
	case "OOM":
		return c.access == grows
	}
	return c.access != noKeys
}

var fakeCommands map[string]*fakeCommand

func init() {
	fakeCommands = map[string]*fakeCommand{
		"PING":   {1, noKeys, func(*fakeMaster, *fakeSession, [][]byte) []byte { return []byte("+PONG\r\n") }},
		"AUTH":   {2, noKeys, func(*fakeMaster, *fakeSession, [][]byte) []byte { return replyOK }},
		"SELECT": {2, noKeys, (*fakeMaster).selectDB},
		"CLIENT": {2, noKeys, (*fakeMaster).clientCommand},
		"INFO":   {1, noKeys, (*fakeMaster).info},
		"SCAN":   {2, noKeys, (*fakeMaster).scan},
		"ROLE":   {1, noKeys, (*fakeMaster).role},
		"SCRIPT": {2, noKeys, (*fakeMaster).scriptCommand},
		"TIME":   {1, noKeys, (*fakeMaster).time},
		"SET":    {3, grows, (*fakeMaster).set},
		"GET":    {2, reads, (*fakeMaster).get},
		"GETRANGE": {4, reads, func(m *fakeMaster, s *fakeSession, args [][]byte) []byte {
			e, _ := m.find(s.db, args[1])
			if e.isList {
				return replyError("%s", wrongType)
			}
			return resp.AppendBulk(nil, e.value[:min(int64(len(e.value)), number(args[3])+1)])
		}},
		"INCR":    {2, grows, (*fakeMaster).incr},
		"HINCRBY": {4, grows, (*fakeMaster).hincrby},
		"ZINCRBY": {4, grows, (*fakeMaster).zincrby},
		"GETSET":  {3, grows, (*fakeMaster).getset},
		"EXISTS":  {2, reads, (*fakeMaster).exists},
		"DEL":     {2, writes, (*fakeMaster).del},
		"PEXPIRE": {3, writes, (*fakeMaster).pexpire},
		"PERSIST": {2, writes, (*fakeMaster).persist},
		"DUMP":    {2, reads, (*fakeMaster).dump},
		"RESTORE": {4, grows, (*fakeMaster).restore},
		"EVAL":    {3, runs, (*fakeMaster).eval},
		"EVALSHA": {3, runs, (*fakeMaster).evalsha},
		"STRLEN": {2, reads, func(m *fakeMaster, s *fakeSession, args [][]byte) []byte {
			e, _ := m.find(s.db, args[1])
			return replyInteger(int64(len(e.value)))
		}},
		"TYPE": {2, reads, func(m *fakeMaster, s *fakeSession, args [][]byte) []byte {
			switch e, ok := m.find(s.db, args[1]); {
			case !ok:
				return []byte("+none\r\n")
			case e.isList:
				return []byte("+list\r\n")
			}
			return []byte("+string\r\n")
		}},
		"PTTL": {2, reads, func(m *fakeMaster, s *fakeSession, args [][]byte) []byte {
			return m.pttl(s.db, args[1])
		}},
		"TTL": {2, reads, func(m *fakeMaster, s *fakeSession, args [][]byte) []byte {
			n, _ := resp.ParseInteger(m.pttl(s.db, args[1]))
			if n >= 0 {
				n = (n + 500) / 1000
			}
			return replyInteger(n)
		}},
	}
}

var (
	replyOK  = []byte("+OK\r\n")
	replyNil = []byte("$-1\r\n")
)

func replyInteger(n int64) []byte { return []byte(":" + string(resp.Decimal(n)) + "\r\n") }

func replyBool(b bool) []byte {
	if b {
		return replyInteger(1)
	}
	return replyInteger(0)
}

func replyError(format string, args ...any) []byte {
	return append(fmt.Appendf([]byte{'-'}, format, args...), "\r\n"...)
}

// find returns a key that has not expired.
func (m *fakeMaster) find(db int, key []byte) (entry, bool) {
	e, ok := m.dbs[db][string(key)]
	if ok && e.expires != 0 && m.millis() > e.expires {
		delete(m.dbs[db], string(key))
		return entry{}, false
	}
	return e, ok
}

func (m *fakeMaster) store(db int, key []byte, e entry) {
	if m.dbs[db] == nil {
		m.dbs[db] = map[string]entry{}
	}
	m.dbs[db][string(key)] = e
	if m.backlog {
		m.offset++
	}
}

func (m *fakeMaster) read(db int, key []byte) []byte {
	if e, ok := m.find(db, key); ok {
		return resp.AppendBulk(nil, e.value)
	}
	return replyNil
}

func (m *fakeMaster) pttl(db int, key []byte) []byte {
	e, ok := m.find(db, key)
	switch {
	case !ok:
		return replyInteger(-2)
	case e.expires == 0:
		return replyInteger(-1)
	}
	return replyInteger(e.expires - m.millis())
}

func (m *fakeMaster) selectDB(s *fakeSession, args [][]byte) []byte {
	db, err := strconv.Atoi(string(args[1]))
	if err != nil || db < 0 || db >= m.databases {
		return replyError("ERR DB index is out of range")
	}
	s.db = db
	return replyOK
}

func (m *fakeMaster) clientCommand(s *fakeSession, args [][]byte) []byte {
	switch strings.ToUpper(string(args[1])) {
	case "ID":
		return replyInteger(s.id)
	case "KILL":
		id, _ := strconv.ParseInt(string(args[3]), 10, 64)
		return replyBool(m.disconnect(id))
	}
	return replyError("ERR unknown subcommand '%s'. Try CLIENT HELP.", args[1])
}

// keyspace is the part of INFO about the databases.
func (m *fakeMaster) keyspace() string {
	text := "# Keyspace\r\n"
	for _, db := range slices.Sorted(maps.Keys(m.dbs)) {
		text += fmt.Sprintf("db%d:keys=%d,expires=0,avg_ttl=0\r\n", db, len(m.dbs[db]))
	}
	return text
}

func (m *fakeMaster) info(_ *fakeSession, args [][]byte) []byte {
	text := fmt.Sprintf("# Server\r\nredis_version:7.0.15\r\nrun_id:%s\r\n# Replication\r\n%s\r\n%s", m.runID(), m.replication(), m.memory())
	if len(args) == 1 { // nobody reads it from a section's INFO
		text += m.keyspace()
	}
	return resp.AppendBulk(nil, text)
}

// scan returns all keys at once.
func (m *fakeMaster) scan(s *fakeSession, _ [][]byte) []byte {
	keys := slices.Sorted(maps.Keys(m.dbs[s.db]))
	return append(resp.AppendBulk(resp.AppendArray(nil, 2), "0"), resp.AppendCommand(nil, keys...)...)
}

func (m *fakeMaster) role(*fakeSession, [][]byte) []byte {
	switch {
	case m.noRole:
		return replyError("NOPERM this user has no permissions to run the 'role' command")
	case m.replica:
		return fmt.Appendf(nil, "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:%d\r\n", m.offset)
	}
	return fmt.Appendf(nil, "*3\r\n$6\r\nmaster\r\n:%d\r\n*0\r\n", m.offset)
}

func (m *fakeMaster) scriptCommand(_ *fakeSession, args [][]byte) []byte {
	sha := fmt.Sprintf("%x", sha1.Sum(args[2]))
	m.scripts[sha] = string(args[2])
	return resp.AppendBulk(nil, sha)
}

func (m *fakeMaster) time(*fakeSession, [][]byte) []byte {
	now := m.clock.now()
	return resp.AppendCommand(nil, strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
}

func (m *fakeMaster) set(s *fakeSession, args [][]byte) []byte {
	old, exists := m.find(s.db, args[1])
	e := entry{value: string(args[2])}
	var nx, xx, get bool
	for i := 3; i < len(args); i++ {
		switch strings.ToUpper(string(args[i])) {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "GET":
			get = true
		case "KEEPTTL":
			e.expires = old.expires
		case "PX":
			i++
			ttl, _ := strconv.ParseInt(string(args[i]), 10, 64)
			e.expires = m.millis() + ttl
		default:
			return replyError("ERR syntax error")
		}
	}
	done := !(nx && exists || xx && !exists)
	reply := replyOK
	switch {
	case get:
		reply = m.read(s.db, args[1])
	case !done:
		reply = replyNil
	}
	if done {
		m.store(s.db, args[1], e)
	}
	return reply
}

func (m *fakeMaster) get(s *fakeSession, args [][]byte) []byte {
	if e, _ := m.find(s.db, args[1]); e.isList {
		return replyError("%s", wrongType)
	}
	return m.read(s.db, args[1])
}

func (m *fakeMaster) getset(s *fakeSession, args [][]byte) []byte {
	old := m.read(s.db, args[1])
	m.store(s.db, args[1], entry{value: string(args[2])})
	return old
}

func (m *fakeMaster) exists(s *fakeSession, args [][]byte) []byte {
	_, ok := m.find(s.db, args[1])
	return replyBool(ok)
}

func (m *fakeMaster) del(s *fakeSession, args [][]byte) []byte {
	_, ok := m.find(s.db, args[1])
	delete(m.dbs[s.db], string(args[1]))
	return replyBool(ok)
}

func (m *fakeMaster) pexpire(s *fakeSession, args [][]byte) []byte {
	e, ok := m.find(s.db, args[1])
	if !ok {
		return replyInteger(0)
	}
	ttl, err := strconv.ParseInt(string(args[2]), 10, 64)
	if err != nil {
		return replyError("ERR value is not an integer or out of range")
	}
	expires := m.millis() + ttl
	if len(args) > 3 {
		refused := false
		switch strings.ToUpper(string(args[3])) {
		case "NX":
			refused = e.expires != 0
		case "XX":
			refused = e.expires == 0
		case "GT":
			refused = e.expires == 0 || expires <= e.expires
		case "LT":
			refused = e.expires != 0 && expires >= e.expires
		default:
			return replyError("ERR Unsupported option %s", args[3])
		}
		if refused {
			return replyInteger(0)
		}
	}
	if ttl <= 0 {
		delete(m.dbs[s.db], string(args[1]))
	} else {
		e.expires = expires
		m.store(s.db, args[1], e)
	}
	return replyInteger(1)
}

func (m *fakeMaster) persist(s *fakeSession, args [][]byte) []byte {
	e, ok := m.find(s.db, args[1])
	if !ok || e.expires == 0 {
		return replyInteger(0)
	}
	e.expires = 0
	m.store(s.db, args[1], e)
	return replyInteger(1)
}

func (m *fakeMaster) evalsha(s *fakeSession, args [][]byte) []byte {
	text, known := m.scripts[strings.ToLower(string(args[1]))]
	if !known {
		return replyError("NOSCRIPT No matching script. Please use EVAL.")
	}
	return m.eval(s, append([][]byte{args[0], []byte(text)}, args[2:]...))
}

func (m *fakeMaster) incr(s *fakeSession, args [][]byte) []byte {
	e, ok := m.find(s.db, args[1])
	if !ok {
		e.value = "0"
	}
	n, isNumber := resp.ParseDecimal([]byte(e.value))
	if !isNumber {
		return replyError("ERR value is not an integer or out of range")
	}
	e.value = string(resp.Decimal(n + 1))
	m.store(s.db, args[1], e)
	return replyInteger(n + 1)
}

// hincrby adds 1 to a hash's field.
func (m *fakeMaster) hincrby(s *fakeSession, args [][]byte) []byte {
	e, v := m.unpack(s.db, args[1], rdb.Hash)
	at := 2 * slices.IndexFunc(slices.Collect(slices.Chunk(v.Items, 2)), func(pair [][]byte) bool { return bytes.Equal(pair[0], args[2]) })
	if at < 0 {
		at, v.Items = len(v.Items), append(v.Items, args[2], []byte("0"))
	}
	n, _ := resp.ParseDecimal(v.Items[at+1])
	v.Items[at+1] = resp.Decimal(n + 1)
	m.store(s.db, args[1], entry{value: string(rdb.Dump(v)), packed: true, expires: e.expires})
	return replyInteger(n + 1)
}

// zincrby adds 1 to a member's score.
func (m *fakeMaster) zincrby(s *fakeSession, args [][]byte) []byte {
	e, v := m.unpack(s.db, args[1], rdb.SortedSet)
	at := slices.IndexFunc(v.Items, func(member []byte) bool { return bytes.Equal(member, args[3]) })
	if at < 0 {
		at, v.Items, v.Scores = len(v.Items), append(v.Items, args[3]), append(v.Scores, 0)
	}
	n := v.Scores[at] + 1
	v.Scores[at] = n
	m.store(s.db, args[1], entry{value: string(rdb.Dump(v)), packed: true, expires: e.expires})
	return resp.AppendBulk(nil, resp.Decimal(int64(n)))
}

// unpack returns a hash or a sorted set that a master has, or an empty one.
func (m *fakeMaster) unpack(db int, key []byte, kind rdb.Kind) (entry, rdb.Value) {
	e, ok := m.find(db, key)
	if !ok {
		return e, rdb.Value{Kind: kind}
	}
	return e, rdb.Read([]byte(e.value))
}
