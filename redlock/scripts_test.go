package redlock

import (
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/token"
	"redlock-proxy/redlock/toymaster"
)

// compareAndDelete is the script with which most clients release a lock.
const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// takeIfFree is a script with which some clients acquire a lock.
const takeIfFree = `if redis.call("set",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) then return 1 else return 0 end`

// extendIfMine is the script with which most clients extend a lock.
const extendIfMine = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`

// deleteAnyway is a script that releases a lock, whoever holds it.
const deleteAnyway = `return redis.call("del",KEYS[1])`

var guardScript = scriptOf(effect.AppendGuard(nil, nil, nil))

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
	guardScript:          "watched.lua",
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
	args, _ := toymaster.ParseFrame(frames)
	return string(args[1])
}

// newMaster returns a toy master that skips the script of probes: it changes nothing, and most scripts
// that run are probes.
func newMaster(name string) *toymaster.Master {
	m := toymaster.New(name)
	m.Edit = withoutProbe
	return m
}

func withoutProbe(script string) string {
	if script == stream.ProbeScript {
		return "return 0"
	}
	return script
}

// probes counts the commands of a probe that came last on each connection, without another one behind them.
type probes map[*toymaster.Conn]int

// goesOn tells whether a command is part of a probe of its stream.
func (p probes) goesOn(x toymaster.Execution) bool {
	steps := []string{"SET", "WATCH", "UNWATCH", "MULTI", "EXEC", "EVAL"}
	n, name := p[x.Conn], string(x.Args[0])
	if name == "SET" && string(x.Args[1]) == stream.WriteProbe[1] {
		n = 0
	} else if n == 0 || n == len(steps) || name != steps[n] {
		p[x.Conn] = 0
		return false
	}
	p[x.Conn] = n + 1
	return true
}
