package redlock

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/token"
)

// A fake master runs scripts in Lua, as Redis does.

// compareAndDelete is the script with which most clients release a lock.
const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// takeIfFree is a script with which some clients acquire a lock.
const takeIfFree = `if redis.call("set",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return 1 else return 0 end`

// deleteAnyway is a script that releases a lock, whoever holds it.
const deleteAnyway = `return redis.call("del",KEYS[1])`

var fakeGuard = scriptOf(effect.AppendGuard(nil, nil, nil))

// scriptNames are the names by which tests and histories call scripts.
var scriptNames = map[string]string{
	stream.ReleaseScript: "release.lua",
	stream.ExpireScript:  "expire.lua",
	stream.ProbeScript:   "probe.lua",
	effect.BoundScript:   "bound.lua",
	persistScript:        "persist.lua",
	renewScript:          "renew.lua",
	deleteScript:         "delete.lua",
	effect.UndoScript:    "undo.lua",
	fakeGuard:            "watched.lua",
	scriptOf(master.AppendMark(nil, roster.Write{}, 0)):                     "mark.lua",
	scriptOf(master.AppendMark(nil, roster.Write{Kind: roster.EditAll}, 0)): "edit.lua",
	scriptOf(master.AppendRaise(nil, 0, 0)):                                 "raise.lua",
	token.Script:                                                            "token.lua",
	takeIfFree:                                                              "take-if-free",
	deleteAnyway:                                                            "delete-anyway",
	compareAndDelete:                                                        "compare-and-delete",
	extendIfMine:                                                            "extend-if-mine",
}

// scriptOf returns the text of the script that a command runs.
func scriptOf(frames []byte) string {
	args, _ := parseFrame(frames)
	return string(args[1])
}

// isProbe tells whether a command is part of a probe of the stream.
func (s *fakeSession) isProbe(args [][]byte) bool {
	steps := []string{"SET", "WATCH", "UNWATCH", "MULTI", "EXEC", "EVAL"}
	if name := string(args[0]); name == "SET" && string(args[1]) == stream.WriteProbe[1] {
		s.probed = 0
	} else if s.probed == 0 || s.probed == len(steps) || name != steps[s.probed] {
		s.probed = 0
		return false
	}
	s.probed++
	return true
}

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
func (m *fakeMaster) interpreter() *lua.LState {
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
func (m *fakeMaster) eval(s *fakeSession, args [][]byte) []byte {
	text := string(args[1])
	if text == stream.ProbeScript {
		return replyInteger(0) // it changes nothing, and most scripts that run are probes
	}
	if m.bareDEL && text == stream.ReleaseScript {
		text = strings.Replace(text, "~= ARGV[1]", "== false", 1)
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
	m.caller = &fakeSession{master: m, conn: s.conn, id: s.id, db: s.db}
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
func (m *fakeMaster) redisCall(l *lua.LState, raises bool) int {
	args := make([][]byte, 0, 8)
	for i := range l.GetTop() {
		if n, ok := l.Get(i + 1).(lua.LNumber); ok {
			args = append(args, strconv.AppendFloat(nil, float64(n), 'g', 17, 64))
		} else {
			args = append(args, []byte(l.CheckString(i+1)))
		}
	}
	command := fakeCommands[strings.ToUpper(string(args[0]))]
	if command == nil || len(args) < command.arity {
		panic(fmt.Sprintf("the fake master has no such command for scripts: %q", args))
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
		return append(dst, replyInteger(int64(v))...)
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
		return append(dst, replyInteger(1)...)
	}
	return append(dst, replyNil...)
}

func number(arg []byte) int64 {
	n, err := strconv.ParseInt(string(arg), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a fake master was given %q for a number", arg))
	}
	return n
}
func (m *fakeMaster) dump(s *fakeSession, args [][]byte) []byte {
	if e, ok := m.find(s.db, args[1]); ok {
		return resp.AppendBulk(nil, e.dump())
	}
	return replyNil
}

func (m *fakeMaster) restore(s *fakeSession, args [][]byte) []byte {
	e := entry{expires: number(args[2])}
	switch v := rdb.Read(args[3]); v.Kind {
	case rdb.String:
		e.value = string(v.Items[0])
	case rdb.Hash, rdb.SortedSet:
		e.value, e.packed = string(args[3]), true
	default:
		return replyError("ERR DUMP payload version or checksum are wrong")
	}
	replace := false
	for _, option := range args[4:] {
		switch strings.ToUpper(string(option)) {
		case "REPLACE":
			replace = true
		case "ABSTTL":
			e.expires -= m.millis()
		}
	}
	if _, exists := m.find(s.db, args[1]); exists && !replace {
		return replyError("BUSYKEY Target key name already exists.")
	}
	if e.expires != 0 {
		e.expires += m.millis()
	}
	m.store(s.db, args[1], e)
	return replyOK
}

// dumpString returns DUMP's payload of a string.
func dumpString(value string) []byte {
	return rdb.Dump(rdb.Value{Kind: rdb.String, Items: [][]byte{[]byte(value)}})
}

func TestFakeMasterDumpsWhatItCanRestore(t *testing.T) {
	for _, value := range []string{"", "1", "a token of 20 bytes.", strings.Repeat("x", 300)} {
		if got, ok := rdb.StringValue(dumpString(value)); !ok || string(got) != value {
			t.Errorf("%q came back as %q, %v", value, got, ok)
		}
	}
}

// The fake master's Lua is not Redis's. So each script runs on a real server and on a fake one, with the
// same keys.
func TestFakeMasterRunsScriptsAsRedisDoes(t *testing.T) {
	live := startLiveMaster(t)
	live.must("SET", "k", "v")
	const payload = "the payload of v" // each server has its own
	with := func(its []byte, command []string) (out []string) {
		for _, word := range command {
			out = append(out, strings.ReplaceAll(word, payload, string(its)))
		}
		return out
	}
	its := live.dump("k")
	live.must("DEL", "k")
	directFake(func(fake *fakeSession) {
		for _, before := range [][]string{{"DEL", "k"}, {"SET", "k", "v"}, {"SET", "k", "v", "PX", "60000"}, {"SET", "k", "other"}} {
			for _, run := range [][]string{
				{stream.ReleaseScript, "v", "-1"}, {stream.ReleaseScript, "v", "-2"}, {stream.ReleaseScript, "v", "50000"}, {stream.ReleaseScript, "v", "70000"},
				{stream.ExpireScript, "v", "50000"}, {stream.ExpireScript, "v", "70000"}, {persistScript, "v"},
				{renewScript, "v", "50000", "string"}, {renewScript, "v", "70000", "string"},
				{deleteScript, "dump", payload},
				{compareAndDelete, "v"}, {takeIfFree, "w", "60000"}, {deleteAnyway}, {extendIfMine, "v", "50000"},
			} {
				command := append([]string{"EVAL", run[0], "1", "k"}, run[1:]...)
				for _, do := range [][]string{{"DEL", "k"}, before, command, {"GET", "k"}, {"PTTL", "k"}} {
					want, got := live.do(with(its, do)...), fake.do(with(dumpString("v"), do)...)
					if string(do[0]) == "PTTL" {
						want, got = roundSeconds(want), roundSeconds(got)
					}
					if string(got) != string(want) {
						t.Errorf("after %q, %.40q %q: %q says %q, and Redis %q", before, run[0], run[1:], do[0], got, want)
					}
				}
			}
		}
	})
}

func roundSeconds(pttl []byte) []byte {
	n, _ := resp.ParseInteger(pttl)
	if n < 0 {
		return pttl
	}
	return replyInteger((n + 999) / 1000)
}

// directFake gives a test a session with a fake master, without a network and on the real
// clock.
func directFake(test func(*fakeSession)) {
	m := newFakeMaster("fake")
	m.lastID = 1
	test(&fakeSession{master: m, conn: &fakeConn{link: newLink("direct", m, 0, nil)}, id: 1})
}

func (s *fakeSession) do(args ...string) []byte {
	var frame [][]byte
	for _, a := range args {
		frame = append(frame, []byte(a))
	}
	reply, _ := s.master.execute(s, frame)
	return reply
}
