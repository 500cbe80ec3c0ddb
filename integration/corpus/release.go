package corpus

import (
	"maps"
	"slices"
	"strings"
)

// ReleaseScripts delete KEYS[1] if its value is ARGV[1]. They do the same but reply
// differently. No two libraries use the same text.
var ReleaseScripts = map[string]string{
	"one line":           `if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`,
	"single quotes":      `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
	"parentheses":        "if (redis.call('get', KEYS[1]) == ARGV[1])\nthen\n\treturn (redis.call('del', KEYS[1]))\nelse\n\treturn 0\nend",
	"windows line ends":  strings.ReplaceAll("-- release\nlocal v = redis.call('get', KEYS[1])\nif v == ARGV[1] then\n  return redis.call('del', KEYS[1])\nend\nreturn 0\n", "\n", "\r\n"),
	"redis-py":           "local held = redis.call('get', KEYS[1])\nif not held or held ~= ARGV[1] then\n  return 0\nend\nredis.call('del', KEYS[1])\nreturn 1",
	"true and false":     "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return true end return false",
	"spring":             "if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('UNLINK', KEYS[1]) == 1 then\n  redis.call('PUBLISH', ARGV[2] or 'released', KEYS[1])\n  return true\nend\nreturn false",
	"returns nothing":    "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end",
	"status or nil":      "if redis.call('get', KEYS[1]) == ARGV[1] then\n  redis.call('del', KEYS[1])\n  return redis.status_reply('OK')\nend\nreturn nil",
	"redsync":            "local held = redis.call(\"GET\", KEYS[1])\nif held == ARGV[1] then\n\treturn redis.call(\"DEL\", KEYS[1])\nelseif held == false then\n\treturn -1\nelse\n\treturn 0\nend",
	"pcall":              "local held = redis.pcall('get', KEYS[1])\nif type(held) == 'string' and held == ARGV[1] then return redis.pcall('del', KEYS[1]) end\nreturn 0",
	"shebang":            "#!lua\nif redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end\nreturn 0",
	"and or":             "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0",
	"mixed case":         "if redis.call('gEt', KEYS[1]) == ARGV[1] then return redis.call('Del', KEYS[1]) else return 0 end",
	"local functions":    "local function mine(key, owner) return redis.call('get', key) == owner end\nlocal count = 0\nfor _, key in ipairs(KEYS) do if mine(key, ARGV[1]) then count = count + redis.call('del', key) end end\nreturn count",
	"getrange":           "local size = string.len(ARGV[1])\nif redis.call('getrange', KEYS[1], 0, size - 1) == ARGV[1] then return redis.call('del', KEYS[1]) end\nreturn 0",
	"expires at once":    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], 0) end\nreturn 0",
	"no if":              "local answers = {[true] = function() return redis.call('del', KEYS[1]) end, [false] = function() return 0 end}\nreturn answers[redis.call('get', KEYS[1]) == ARGV[1]]()",
	"aioredlock":         "local held = redis.call('get', KEYS[1])\nif not held then\n  return redis.status_reply('OK')\nelseif held == ARGV[1] then\n  return redis.call('del', KEYS[1])\nend\nreturn redis.error_reply('ERROR')",
	"what it deleted":    "local held = redis.call('get', KEYS[1])\nif held == ARGV[1] then redis.call('del', KEYS[1]) return held end\nreturn {err = 'NOTOWNER held by ' .. tostring(held)}",
	"getdel":             "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('getdel', KEYS[1]) end",
	"compares a number":  "if tonumber(redis.call('strlen', KEYS[1])) > 0 and redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
	"server.call":        "if server.call('get', KEYS[1]) == ARGV[1] then return server.call('del', KEYS[1]) end return 0",
	"byte order mark":    "\xef\xbb\xbfif redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
	"second words in it": "--[[ long\ncomment ]]\nlocal K, A = KEYS, ARGV\nif redis.call('get', K[1]) == A[1] then local n = redis.call('del', unpack(K)) return n end return 0",
}

func releaseScenarios() []Scenario {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(ReleaseScripts)) {
		text, key := ReleaseScripts[name], "lock:{n}"
		all = append(all, Scenario{"release: " + name, []step{
			line("SET lock:{n} mine NX PX 100000"),
			eval(text, []string{key}, "another"),
			line("GET lock:{n}"),
			eval(text, []string{key}, "mine"),
			line("EXISTS lock:{n}"),
			eval(text, []string{key}, "mine"),
			line("SET lock:{n} again NX PX 100000"),
			evalsha(text, []string{key}, "mine"),
			evalsha(text, []string{key}, "again"),
			line("GET lock:{n}"),
		}})
	}
	return append(all, inverseRelease(), releaseByArgument())
}

// inverseRelease is python-redis-lock's: 0 means success, and it deletes the signal list
// together with the lock.
func inverseRelease() Scenario {
	const unlock = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[2])
redis.call('del', KEYS[1])
return 0`
	const extend = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
if redis.call('ttl', KEYS[1]) < 0 then return 2 end
redis.call('expire', KEYS[1], ARGV[2])
return 0`
	const reset = `
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[1])
return redis.call('del', KEYS[1])`
	keys := []string{"lock:{n}", "lock-signal:{n}"}
	return Scenario{"python-redis-lock", []step{
		line("GET lock:{n}"),
		line("SET lock:{n} token/+= EX 100 NX"),
		eval(extend, keys, "other", "50"),
		eval(extend, keys, "token/+=", "50"),
		line("TTL lock:{n}").by(remainingSeconds),
		eval(unlock, keys, "other", "90000"),
		eval(unlock, keys, "token/+=", "90000"),
		line("EXISTS lock:{n}"),
		line("LRANGE lock-signal:{n} 0 -1"),
		line("BLPOP lock-signal:{n} 1"),
		line("SET lock:{n} forever NX"),
		eval(extend, keys, "forever", "50"),
		eval(reset, keys, "90000"),
		eval(reset, keys, "90000"),
		line("EXISTS lock:{n} lock-signal:{n}"),
	}}
}

// releaseByArgument passes the key in ARGV too and uses it from there. Clients do so that
// turn named parameters into arguments.
func releaseByArgument() Scenario {
	const text = `if redis.call('get', ARGV[1]) == ARGV[2] then return redis.call('del', ARGV[1]) else return 0 end`
	return Scenario{"release: the key is an argument", []step{
		line("SET lock:{n} mine EX 100 NX"),
		cmd("SCRIPT", "LOAD", text),
		evalsha(text, []string{"lock:{n}"}, "lock:{n}", "another"),
		evalsha(text, []string{"lock:{n}"}, "lock:{n}", "mine"),
		evalsha(text, []string{"lock:{n}"}, "lock:{n}", "mine"),
	}}
}
