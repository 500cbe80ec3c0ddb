package redlock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/token"
)

// A fakeScript is a Lua script in Go. If a text is not known here, the test is wrong or a
// new script must be added.
type fakeScript struct {
	name string
	run  func(m *fakeMaster, db int, key []byte, argv [][]byte) []byte
}

// compareAndDelete is the script with which most clients release a lock.
const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// takeIfFree is a script with which some clients acquire a lock.
const takeIfFree = `if redis.call("set",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return 1 else return 0 end`

// deleteAnyway is a script that releases a lock, whoever holds it.
const deleteAnyway = `return redis.call("del",KEYS[1])`

var ourScripts map[string]*fakeScript

func init() {
	ourScripts = map[string]*fakeScript{
		stream.ReleaseScript: {"release.lua", (*fakeMaster).runRelease},
		stream.ExpireScript:  {"expire.lua", (*fakeMaster).runExpire},
		stream.ProbeScript:   {"probe.lua", func(*fakeMaster, int, []byte, [][]byte) []byte { return replyInteger(0) }},
		effect.BoundScript:   {"bound.lua", nil},
		persistScript:        {"persist.lua", (*fakeMaster).runPersist},
		renewScript:          {"renew.lua", (*fakeMaster).runRenew},
		deleteScript:         {"delete.lua", (*fakeMaster).runDelete},
		effect.UndoScript:    {"undo.lua", (*fakeMaster).runUndo},
		scriptOf(master.AppendMark(nil, roster.Write{}, 0)):                     {"mark.lua", (*fakeMaster).runMark},
		scriptOf(master.AppendMark(nil, roster.Write{Kind: roster.EditAll}, 0)): {"edit.lua", (*fakeMaster).runEdit},
		scriptOf(master.AppendRaise(nil, 0, 0)):                                 {"raise.lua", (*fakeMaster).runRaise},
		token.Script:                                                            {"token.lua", (*fakeMaster).runToken},
		takeIfFree:                                                              {"take-if-free", (*fakeMaster).runTakeIfFree},
		deleteAnyway:                                                            {"delete-anyway", (*fakeMaster).runDeleteAnyway},
		compareAndDelete:                                                        {"compare-and-delete", (*fakeMaster).runCompareAndDelete},
	}
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

// scriptOf returns the text of the script that a command runs.
func scriptOf(frames []byte) string {
	args, _ := parseFrame(frames)
	return string(args[1])
}

func (m *fakeMaster) eval(s *fakeSession, args [][]byte) []byte {
	script := ourScripts[strings.TrimSuffix(string(args[1]), "\n--\\")]
	if script == nil {
		panic(fmt.Sprintf("the fake master does not know this script: %s", args[1]))
	}
	if script.name == "bound.lua" {
		return replyInteger(0) // its values are short
	}
	if string(args[2]) != "1" && script.name != "token.lua" && script.name != "probe.lua" {
		panic("the fake master runs scripts on one key only")
	}
	return script.run(m, s.db, args[3], args[4:])
}

func number(arg []byte) int64 {
	n, err := strconv.ParseInt(string(arg), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("a script was given %q for a number", arg))
	}
	return n
}

func (m *fakeMaster) runRelease(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if !equalArg(e, ok, argv[0]) && !(ok && m.bareDEL) {
		return replyInteger(0)
	}
	switch limit := number(argv[1]); {
	case limit == -2 && e.expires != 0,
		limit >= 0 && (e.expires == 0 || e.expires-m.millis() > limit):
		return replyInteger(0)
	}
	delete(m.dbs[db], string(key))
	return replyInteger(1)
}

func (m *fakeMaster) runExpire(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if !equalArg(e, ok, argv[0]) {
		return replyInteger(0)
	}
	if e.expires != 0 && e.expires-m.millis() > number(argv[1]) {
		return replyInteger(0)
	}
	e.expires = m.millis() + number(argv[1])
	m.store(db, key, e)
	return replyInteger(1)
}

func (m *fakeMaster) runRenew(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if !equalArg(e, ok, argv[0]) {
		return replyInteger(0)
	}
	if e.expires != 0 && e.expires-m.millis() < number(argv[1]) {
		e.expires = m.millis() + number(argv[1])
		m.store(db, key, e)
	}
	return replyInteger(1)
}

func (m *fakeMaster) runPersist(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if !equalArg(e, ok, argv[0]) {
		return replyInteger(0)
	}
	e.expires = 0
	m.store(db, key, e)
	return replyInteger(1)
}

func (m *fakeMaster) runDelete(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if !ok || string(dumpString(e.value)) != string(argv[1]) {
		return replyInteger(0)
	}
	delete(m.dbs[db], string(key))
	return replyInteger(1)
}

func (m *fakeMaster) runCompareAndDelete(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if !equalArg(e, ok, argv[0]) {
		return replyInteger(0)
	}
	delete(m.dbs[db], string(key))
	return replyInteger(1)
}

func (m *fakeMaster) runDeleteAnyway(db int, key []byte, _ [][]byte) []byte {
	_, ok := m.find(db, key)
	delete(m.dbs[db], string(key))
	return replyBool(ok)
}

func (m *fakeMaster) runTakeIfFree(db int, key []byte, argv [][]byte) []byte {
	if _, exists := m.find(db, key); exists {
		return replyInteger(0)
	}
	m.store(db, key, entry{value: string(argv[0]), expires: m.millis() + number(argv[1])})
	return replyInteger(1)
}

func (m *fakeMaster) runUndo(db int, key []byte, argv [][]byte) []byte {
	e, ok := m.find(db, key)
	if ok != (len(argv[0]) > 0) || ok && string(dumpString(e.value)) != string(argv[0]) {
		return replyInteger(0)
	}
	left := number(argv[1])
	switch {
	case (e.expires == 0) != (left < 0):
		return replyInteger(0)
	case e.expires != 0 && max(e.expires-left, left-e.expires) > 2:
		return replyInteger(0)
	}
	if len(argv) > 4 && m.millis() > number(argv[4]) {
		return replyInteger(0)
	}
	if len(argv) < 3 || len(argv[2]) == 0 || number(argv[3]) >= 0 && number(argv[3]) <= m.millis() {
		delete(m.dbs[db], string(key))
		return replyInteger(1)
	}
	value, ok := rdb.StringValue(argv[2])
	if !ok {
		panic("the fake master restores strings only")
	}
	m.store(db, key, entry{value: string(value), expires: max(0, number(argv[3]))})
	return replyInteger(1)
}

// fakeDatabases is the number of a fake master's databases.
const fakeDatabases = 16

// eachDatabase visits the same databases as databases.lua.
func eachDatabase(own int, most int64, visit func(db int)) {
	visit(own)
	for db := range int(min(most, fakeDatabases)) {
		if db != own {
			visit(db)
		}
	}
}

// marker returns what databases.lua reads as a database's marker.
func (m *fakeMaster) marker(db int, key []byte) (text string, ours bool) {
	e, ok := m.find(db, key)
	return e.value, !ok || strings.HasPrefix(e.value, marker.Version+" ") || strings.HasPrefix(e.value, marker.ResizedVersion+" ")
}

var anyDatabase = regexp.MustCompile(` db=\d+ `)

func inDatabase(text string, db int) string {
	return anyDatabase.ReplaceAllString(text, fmt.Sprintf(" db=%d ", db))
}

func (m *fakeMaster) runMark(db int, key []byte, argv [][]byte) []byte {
	if e, _ := m.find(db, key); withoutToken(e.value) != string(argv[1]) || m.millis() > number(argv[2]) {
		return replyInteger(0)
	}
	written, last := marker.CutToken(string(argv[3]))
	text := strings.Replace(written, " since=now ", fmt.Sprintf(" since=%d ", m.millis()), 1)
	text = strings.Replace(text, " turned=now", fmt.Sprintf(" turned=%d", m.millis()), 1)
	ours, _ := marker.Parse(text)
	spread := string(argv[4])
	remembers := func(m marker.Marker) bool {
		return m.Members > 0 && m.Set == ours.Set && m.Run == ours.Run
	}
	overwrites := func(other int, m marker.Marker) bool {
		return other == db || spread == "all" || spread == "lacking" && !remembers(m)
	}
	if db == 0 {
		eachDatabase(db, number(argv[5]), func(other int) {
			seen, writable := m.marker(other, key)
			theirs, _ := marker.Parse(seen)
			switch {
			case !writable || theirs.Set != ours.Set:
				return
			case overwrites(other, theirs):
				ours.Before = max(ours.Before, theirs.Longest)
			default:
				ours.Longest = max(ours.Longest, theirs.Longest)
			}
			ours.Before = max(ours.Before, theirs.Before)
		})
		text = ours.String()
	}
	eachDatabase(db, number(argv[5]), func(other int) {
		seen, writable := m.marker(other, key)
		theirs, _ := marker.Parse(seen)
		switch {
		case writable && overwrites(other, theirs):
			text := inDatabase(text, other)
			if _, before := marker.CutToken(seen); other == 0 && max(last, before) > 0 {
				text += fmt.Sprintf(" token=%d", max(last, before))
			}
			m.store(other, key, entry{value: text})
		case remembers(theirs) && theirs.DB != other:
			m.store(other, key, entry{value: inDatabase(seen, marker.Nowhere)})
		}
	})
	return replyInteger(1)
}

func withoutToken(text string) string {
	text, _ = marker.CutToken(text)
	return text
}

// runToken does what token.lua does. A fake master is no embedded one.
func (m *fakeMaster) runToken(db int, key []byte, argv [][]byte) []byte {
	markerKey, value, raised, first := argv[0], argv[1], number(argv[2]), number(argv[3])
	e, ok := m.find(db, key)
	held, left, before := equalArg(e, ok, value), int64(-2), int64(-1)
	switch {
	case ok && e.expires == 0:
		left = -1
	case ok:
		left = e.expires - m.millis()
	}
	here, _ := m.find(db, markerKey)
	zero, _ := m.find(0, markerKey)
	own, ours := marker.Parse(here.value)
	record, known := marker.Parse(zero.value)
	same := own.Set == record.Set && own.Member == record.Member && own.Who() == record.Who() && own.Run == record.Run
	fits := ours && known && same && own.DB == db && record.DB == 0
	if fits && m.millis() >= record.VotesFrom() {
		if before = record.Token; before == 0 {
			before = first - 1
		}
		if held && before < raised {
			m.store(0, markerKey, entry{value: fmt.Sprintf("%s token=%d", withoutToken(zero.value), raised)})
		}
	}
	return fmt.Appendf(nil, "*3\r\n%s:%d\r\n:%d\r\n", replyBool(held), left, before)
}

func (m *fakeMaster) runEdit(db int, key []byte, argv [][]byte) []byte {
	if e, ok := m.find(db, key); !ok || withoutToken(e.value) != string(argv[1]) {
		return replyInteger(0)
	}
	eachDatabase(db, number(argv[5]), func(other int) {
		text, _ := m.marker(other, key)
		if theirs, ok := marker.Parse(text); ok && theirs.Set == string(argv[2]) {
			_, text, _ = strings.Cut(strings.Replace(text, theirs.Who(), string(argv[3]), 1), " ")
			theirs, _ = marker.Parse(string(argv[7]) + " " + text)
			if string(argv[4]) == "turn" {
				theirs.Longest, theirs.Before, theirs.Turned = 0, theirs.Longest, m.millis()
			}
			if other == 0 {
				theirs.Token = max(theirs.Token, int64(number(argv[6])))
			}
			m.store(other, key, entry{value: theirs.String()})
		}
	})
	return replyInteger(1)
}

func (m *fakeMaster) runRaise(db int, key []byte, argv [][]byte) []byte {
	return replyBool((db == 0 || m.raise(0, key, argv[1])) && m.raise(db, key, argv[1]))
}

func (m *fakeMaster) raise(db int, key, ttl []byte) bool {
	e, _ := m.find(db, key)
	before, after, found := strings.Cut(e.value, "longest=")
	if named := anyDatabase.FindString(e.value); !found || named != fmt.Sprintf(" db=%d ", db) {
		return false
	}
	longest, rest, _ := strings.Cut(after, " ")
	if number([]byte(longest)) < number(ttl) {
		m.store(db, key, entry{value: strings.TrimSuffix(before+"longest="+string(ttl)+" "+rest, " ")})
	}
	return true
}

func (m *fakeMaster) dump(s *fakeSession, args [][]byte) []byte {
	if e, ok := m.find(s.db, args[1]); ok {
		return resp.AppendBulk(nil, dumpString(e.value))
	}
	return replyNil
}

func (m *fakeMaster) restore(s *fakeSession, args [][]byte) []byte {
	value, ok := rdb.StringValue(args[3])
	if !ok {
		return replyError("ERR DUMP payload version or checksum are wrong")
	}
	e := entry{value: string(value), expires: number(args[2])}
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

// The scripts in Go must do the same as the texts in Lua. So each runs on a real server
// and on a fake one, with the same keys.
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
