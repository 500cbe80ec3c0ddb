package toymaster

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// A toy master runs scripts in Lua, as Redis does.

// compiled are scripts by their texts.
var compiled sync.Map // of *lua.FunctionProto

func compile(text string) (*lua.FunctionProto, error) {
	if proto, ok := compiled.Load(text); ok {
		return proto.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, "user_script")
	if err == nil {
		compiled.Store(text, proto)
	}
	return proto, err
}

// interpreter returns what runs the master's scripts.
func (m *Master) interpreter() *lua.LState {
	if m.lua == nil {
		m.lua = lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 1 << 10, CallStackSize: 32})
		for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenString, lua.OpenMath, lua.OpenTable} {
			m.lua.Push(m.lua.NewFunction(open))
			m.lua.Call(0, 0)
		}
		tonumber := m.lua.GetGlobal("tonumber").(*lua.LFunction).GFunction
		m.lua.SetGlobal("tonumber", m.lua.NewFunction(func(l *lua.LState) int {
			if l.GetTop() == 0 {
				l.Push(lua.LNil) // gopher-lua's string.match returns nothing instead of nil
			}
			return tonumber(l)
		}))
		m.lua.SetGlobal("redis", m.lua.SetFuncs(m.lua.NewTable(), map[string]lua.LGFunction{
			"call":  func(l *lua.LState) int { return m.redisCall(l, true) },
			"pcall": func(l *lua.LState) int { return m.redisCall(l, false) },
		}))
	}
	return m.lua
}

// eval runs a script. A database that the script selects is its own.
func (m *Master) eval(s *Session, args [][]byte) []byte {
	text := string(args[1])
	if m.Edit != nil {
		text = m.Edit(text)
	}
	proto, err := compile(text)
	keys, notANumber := strconv.Atoi(string(args[2]))
	switch {
	case err != nil:
		return replyError("ERR Error compiling script (new function): %s", strings.ReplaceAll(err.Error(), "\n", " "))
	case notANumber != nil || keys > len(args)-3:
		return replyError("ERR Number of keys can't be greater than number of args")
	}
	l := m.interpreter()
	list := func(words [][]byte) *lua.LTable {
		t := l.CreateTable(len(words), 0)
		for _, word := range words {
			t.Append(lua.LString(word))
		}
		return t
	}
	l.SetGlobal("KEYS", list(args[3:3+keys]))
	l.SetGlobal("ARGV", list(args[3+keys:]))
	m.caller = &Session{Master: m, conn: s.conn, ID: s.ID, db: s.db}
	if err := l.CallByParam(lua.P{Fn: l.NewFunctionFromProto(proto), NRet: 1, Protect: true}); err != nil {
		if failed, ok := err.(*lua.ApiError); ok && failed.Object.Type() == lua.LTTable {
			return appendLua(nil, failed.Object)
		}
		panic(fmt.Sprintf("a script failed: %v\n%s", err, text))
	}
	defer l.Pop(1)
	return appendLua(nil, l.Get(-1))
}

// redisCall executes a script's command.
func (m *Master) redisCall(l *lua.LState, raises bool) int {
	args := make([][]byte, 0, 8)
	for i := range l.GetTop() {
		if n, ok := l.Get(i + 1).(lua.LNumber); ok {
			args = append(args, strconv.AppendFloat(nil, float64(n), 'g', 17, 64))
		} else {
			args = append(args, []byte(l.CheckString(i+1)))
		}
	}
	command := commands[strings.ToUpper(string(args[0]))]
	if command == nil || len(args) < command.arity {
		panic(fmt.Sprintf("the toy master has no such command for scripts: %q", args))
	}
	reply := replyError("%s", m.refusal)
	if !m.refuses(command) {
		reply = command.run(m, m.caller, args)
	}
	value, _ := toLua(l, reply)
	if raises && resp.IsError(reply) {
		l.Error(value, 0)
	}
	l.Push(value)
	return 1
}

// toLua turns a reply into what a script sees. It returns the bytes behind the reply, too.
func toLua(l *lua.LState, reply []byte) (lua.LValue, []byte) {
	line, rest, _ := bytes.Cut(reply[1:], []byte("\r\n"))
	field := func(name string) lua.LValue {
		t := l.CreateTable(0, 1)
		t.RawSetString(name, lua.LString(line))
		return t
	}
	switch reply[0] {
	case '+':
		return field("ok"), rest
	case '-':
		return field("err"), rest
	}
	n := number(line)
	switch {
	case reply[0] == ':':
		return lua.LNumber(n), rest
	case n < 0:
		return lua.LFalse, rest
	case reply[0] == '$':
		return lua.LString(rest[:n]), rest[n+2:]
	}
	list := l.CreateTable(int(n), 0)
	for range n {
		var item lua.LValue
		item, rest = toLua(l, rest)
		list.Append(item)
	}
	return list, rest
}

// appendLua appends the reply that a script's result comes to.
func appendLua(dst []byte, value lua.LValue) []byte {
	switch v := value.(type) {
	case lua.LString:
		return resp.AppendBulk(dst, string(v))
	case lua.LNumber:
		return append(dst, ReplyInteger(int64(v))...)
	case *lua.LTable:
		if text, ok := v.RawGetString("ok").(lua.LString); ok {
			return fmt.Appendf(dst, "+%s\r\n", string(text))
		}
		if text, ok := v.RawGetString("err").(lua.LString); ok {
			return fmt.Appendf(dst, "-%s\r\n", string(text))
		}
		dst = resp.AppendArray(dst, v.Len())
		for i := range v.Len() {
			dst = appendLua(dst, v.RawGetInt(i+1))
		}
		return dst
	}
	if value == lua.LTrue {
		return append(dst, ReplyInteger(1)...)
	}
	return append(dst, replyNil...)
}

func number(arg []byte) int64 {
	n, err := strconv.ParseInt(string(arg), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a toy master was given %q for a number", arg))
	}
	return n
}
func (m *Master) dump(s *Session, args [][]byte) []byte {
	if e, ok := m.Find(s.db, args[1]); ok {
		return resp.AppendBulk(nil, e.dump())
	}
	return replyNil
}

func (m *Master) restore(s *Session, args [][]byte) []byte {
	e := Entry{Expires: number(args[2])}
	switch v := rdb.Read(args[3]); v.Kind {
	case rdb.String:
		e.Value = string(v.Items[0])
	case rdb.Hash, rdb.SortedSet:
		e.Value, e.Packed = string(args[3]), true
	default:
		return replyError("ERR DUMP payload version or checksum are wrong")
	}
	replace := false
	for _, option := range args[4:] {
		switch strings.ToUpper(string(option)) {
		case "REPLACE":
			replace = true
		case "ABSTTL":
			e.Expires -= m.Millis()
		}
	}
	if _, exists := m.Find(s.db, args[1]); exists && !replace {
		return replyError("BUSYKEY Target key name already exists.")
	}
	if e.Expires != 0 {
		e.Expires += m.Millis()
	}
	m.Store(s.db, args[1], e)
	return replyOK
}

// DumpString returns DUMP's payload of a string.
func DumpString(value string) []byte {
	return rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(value)}})
}

// Direct returns a session without a network.
func (m *Master) Direct() *Session {
	m.lastID++
	return &Session{Master: m, conn: &Conn{Link: NewLink("direct", m, 0, nil)}, ID: m.lastID}
}

// Do executes a command.
func (s *Session) Do(args ...string) []byte {
	var frame [][]byte
	for _, a := range args {
		frame = append(frame, []byte(a))
	}
	reply, _ := s.Master.execute(s, frame)
	return reply
}
