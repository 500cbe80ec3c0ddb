package redlock

import "strings"

// onlyDeletes tells whether it is certain from a script's text that it is a
// release: it writes nothing to any key but deletions. What deletes without
// asking is none, because it would take votes from who is just acquiring: a
// value has to be read further up, and something to be compared. Such a script
// may overtake acquires that wait, and so may one that only reads.
//
// It is certain only if every way to the server's commands is written out:
// each mention of redis or server is a call with a command's name as a plain
// string, and no other name leads out of the script's own variables. A wrong
// "no" merely costs time, so whatever is unusual gets one.
func onlyDeletes(text []byte) bool {
	tokens, ok := luaTokens(string(text))
	if !ok {
		return false
	}
	own := luaVariables(tokens)
	for name := range own {
		if luaWaysOut[name] {
			return false
		}
	}
	s := releaseScan{tokens: tokens}
	for i, t := range tokens {
		switch {
		case t.is("==") || t.is("~="):
			s.compared = true
		case t.kind != luaName || s.at(i-1).is(".") || s.at(i-1).is(":") || s.isAssigned(i):
		case t.text == "redis" || t.text == "server":
			if !s.harmlessCall(i) {
				return false
			}
		case !own[t.text] && !luaHarmless[t.text]:
			return false
		}
	}
	return !s.deletes || s.compared
}

type releaseScan struct {
	tokens   []luaToken
	looked   bool // a value was read so far
	deletes  bool
	compared bool // something was, anywhere
}

func (s *releaseScan) at(i int) luaToken {
	if i < 0 || i >= len(s.tokens) {
		return luaToken{kind: luaNumber}
	}
	return s.tokens[i]
}

// isAssigned tells whether the name at i is a key in a table or one of several
// that something is assigned to; which of the two does not matter.
func (s *releaseScan) isAssigned(i int) bool {
	before := s.at(i - 1)
	return s.at(i+1).is("=") && (before.is("{") || before.is(",") || before.is(";"))
}

// harmlessCall judges the use of redis or server at i.
func (s *releaseScan) harmlessCall(i int) bool {
	if !s.at(i + 1).is(".") {
		return false
	}
	member, next := s.at(i+2), s.at(i+3)
	if member.kind != luaName {
		return false
	}
	switch member.text {
	case "call", "pcall":
	case "sha1hex", "error_reply", "status_reply", "log":
		return next.is("(")
	default:
		return strings.HasPrefix(member.text, "LOG_") && !next.is("=")
	}
	command, end := s.at(i+4), s.at(i+5)
	if !next.is("(") || command.kind != luaPlain || !end.is(",") && !end.is(")") {
		return false
	}
	switch name := strings.ToLower(command.text); {
	case valueReads[name]:
		s.looked = true
		return true
	case name == "del" || name == "unlink":
		s.deletes = true
		return s.looked
	default:
		return harmlessCommands[name]
	}
}

var (
	// valueReads tell who holds a lock.
	valueReads = words(`get mget getrange substr hget hmget hgetall hexists hkeys hvals lindex lrange lpos
		sismember smismember smembers zscore zmscore zrank zrange`)
	// harmlessCommands write no key, or delete one only by its value.
	harmlessCommands = words(`exists type strlen ttl pttl expiretime pexpiretime hlen hstrlen llen scard zcard zcount
		time ping echo digest publish spublish delifeq`)
	// luaWaysOut lead to commands, or to names by other names. A script that
	// declares one as its own may still use the real one elsewhere.
	luaWaysOut = words(`redis server load loadstring loadfile dofile require module package _G _ENV getfenv setfenv
		getmetatable setmetatable rawget rawset debug coroutine xpcall newproxy`)
	// luaHarmless are Lua's keywords and the globals that lead to no command.
	luaHarmless = words(`and break do else elseif end false for function if in local nil not or repeat return then true
		until while
		KEYS ARGV assert bit cjson cmsgpack error ipairs math next pairs pcall select string struct table tonumber
		tostring type unpack`)
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// luaVariables are the names a script declares: locals, parameters and loop
// variables. Where they are visible is not looked at.
func luaVariables(tokens []luaToken) map[string]bool {
	names := map[string]bool{}
	list := func(i int) { // name, name, name
		for ; i < len(tokens) && tokens[i].kind == luaName; i += 2 {
			names[tokens[i].text] = true
			if i+1 >= len(tokens) || !tokens[i+1].is(",") {
				return
			}
		}
	}
	for i, t := range tokens {
		if t.kind != luaName {
			continue
		}
		switch t.text {
		case "local":
			if i+1 < len(tokens) && tokens[i+1].text == "function" {
				list(i + 2)
			} else {
				list(i + 1)
			}
		case "for":
			list(i + 1)
		case "function":
			for i++; i < len(tokens) && !tokens[i].is("("); i++ {
			}
			list(i + 1)
		}
	}
	return names
}
