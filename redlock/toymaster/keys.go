package toymaster

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// What commands do to keys.

func (m *Master) set(s *Session, args [][]byte) []byte {
	_, exists := m.Find(s.db, args[1])
	e := Entry{Value: string(args[2])}
	var nx, xx bool
	for i := 3; i < len(args); i++ {
		switch strings.ToUpper(string(args[i])) {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "PX":
			i++
			ttl, _ := strconv.ParseInt(string(args[i]), 10, 64)
			e.Expires = m.Millis() + ttl
		default:
			return replyError("ERR syntax error")
		}
	}
	if nx && exists || xx && !exists {
		return replyNil
	}
	m.Store(s.db, args[1], e)
	return replyOK
}

func (m *Master) get(s *Session, args [][]byte) []byte {
	if e, _ := m.Find(s.db, args[1]); e.IsList {
		return replyError("%s", WrongType)
	}
	return m.read(s.db, args[1])
}

func (m *Master) getset(s *Session, args [][]byte) []byte {
	old := m.read(s.db, args[1])
	m.Store(s.db, args[1], Entry{Value: string(args[2])})
	return old
}

func (m *Master) exists(s *Session, args [][]byte) []byte {
	_, ok := m.Find(s.db, args[1])
	return replyBool(ok)
}

func (m *Master) del(s *Session, args [][]byte) []byte {
	_, ok := m.Find(s.db, args[1])
	delete(m.DBs[s.db], string(args[1]))
	return replyBool(ok)
}

func (m *Master) pexpire(s *Session, args [][]byte) []byte {
	e, ok := m.Find(s.db, args[1])
	if !ok {
		return ReplyInteger(0)
	}
	ttl, err := strconv.ParseInt(string(args[2]), 10, 64)
	if err != nil {
		return replyError("ERR value is not an integer or out of range")
	}
	expires := m.Millis() + ttl
	if len(args) > 3 {
		refused := false
		switch strings.ToUpper(string(args[3])) {
		case "NX":
			refused = e.Expires != 0
		case "XX":
			refused = e.Expires == 0
		case "GT":
			refused = e.Expires == 0 || expires <= e.Expires
		case "LT":
			refused = e.Expires != 0 && expires >= e.Expires
		default:
			return replyError("ERR Unsupported option %s", args[3])
		}
		if refused {
			return ReplyInteger(0)
		}
	}
	if ttl <= 0 {
		delete(m.DBs[s.db], string(args[1]))
	} else {
		e.Expires = expires
		m.Store(s.db, args[1], e)
	}
	return ReplyInteger(1)
}

func (m *Master) persist(s *Session, args [][]byte) []byte {
	e, ok := m.Find(s.db, args[1])
	if !ok || e.Expires == 0 {
		return ReplyInteger(0)
	}
	e.Expires = 0
	m.Store(s.db, args[1], e)
	return ReplyInteger(1)
}

func (m *Master) evalsha(s *Session, args [][]byte) []byte {
	text, known := m.Scripts[strings.ToLower(string(args[1]))]
	if !known {
		return replyError("NOSCRIPT No matching script. Please use EVAL.")
	}
	return m.eval(s, append([][]byte{args[0], []byte(text)}, args[2:]...))
}

func (m *Master) incr(s *Session, args [][]byte) []byte {
	e, ok := m.Find(s.db, args[1])
	if !ok {
		e.Value = "0"
	}
	n, isNumber := resp.ParseDecimal([]byte(e.Value))
	if !isNumber {
		return replyError("ERR value is not an integer or out of range")
	}
	e.Value = string(resp.Decimal(n + 1))
	m.Store(s.db, args[1], e)
	return ReplyInteger(n + 1)
}

// hincrby adds 1 to a hash's field.
func (m *Master) hincrby(s *Session, args [][]byte) []byte {
	e, v := m.unpack(s.db, args[1], rdb.Hash)
	at := 2 * slices.IndexFunc(slices.Collect(slices.Chunk(v.Items, 2)), func(pair [][]byte) bool { return bytes.Equal(pair[0], args[2]) })
	if at < 0 {
		at, v.Items = len(v.Items), append(v.Items, args[2], []byte("0"))
	}
	n, _ := resp.ParseDecimal(v.Items[at+1])
	v.Items[at+1] = resp.Decimal(n + 1)
	m.Store(s.db, args[1], Entry{Value: string(rdb.Dump(v)), Packed: true, Expires: e.Expires})
	return ReplyInteger(n + 1)
}

// zincrby adds 1 to a member's score.
func (m *Master) zincrby(s *Session, args [][]byte) []byte {
	e, v := m.unpack(s.db, args[1], rdb.SortedSet)
	at := slices.IndexFunc(v.Items, func(member []byte) bool { return bytes.Equal(member, args[3]) })
	if at < 0 {
		at, v.Items, v.Scores = len(v.Items), append(v.Items, args[3]), append(v.Scores, 0)
	}
	n := v.Scores[at] + 1
	v.Scores[at] = n
	m.Store(s.db, args[1], Entry{Value: string(rdb.Dump(v)), Packed: true, Expires: e.Expires})
	return resp.AppendBulk(nil, resp.Decimal(int64(n)))
}

// unpack returns a hash or a sorted set that a master has, or an empty one.
func (m *Master) unpack(db int, key []byte, kind rdb.Kind) (Entry, rdb.Value) {
	e, ok := m.Find(db, key)
	if !ok {
		return e, rdb.Value{Kind: kind}
	}
	return e, rdb.Read([]byte(e.Value))
}
