package corpus

import (
	"maps"
	"slices"
	"strings"
)

// ExtendScripts set the time to live of KEYS[1] to ARGV[2] if its value is ARGV[1]. The
// unit is milliseconds unless the name says otherwise.
var ExtendScripts = map[string]string{
	"pexpire":             `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`,
	"literal one":         "local held = redis.call('get', KEYS[1])\nif held == ARGV[1] then\n redis.call('pexpire', KEYS[1], ARGV[2])\n return 1\nend\nreturn 0",
	"seconds":             "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('expire', KEYS[1], math.floor(ARGV[2] / 1000)) else return 0 end",
	"set again":           "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end\nredis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nreturn 1",
	"set with its status": "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'XX', 'PX', ARGV[2]) end return nil",
	"new owner name":      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1] .. ':renewed', 'PX', ARGV[2]) end return false",
	"absolute":            "if redis.call('get', KEYS[1]) == ARGV[1] then\n local t = redis.call('time')\n return redis.call('pexpireat', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[2])\nend\nreturn 0",
	"then read":           "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIREAT', KEYS[1], 4102444800000) redis.call('GET', KEYS[1]) return 1 end return 0",
	"only longer":         "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2], 'GT') end return redis.error_reply('NOT LOCKED')",
	"adds":                "local held = redis.call('get', KEYS[1])\nif not held or held ~= ARGV[1] then return 0 end\nlocal left = redis.call('pttl', KEYS[1])\nif left < 0 then return 0 end\nredis.call('pexpire', KEYS[1], ARGV[2] + left)\nreturn 1",
	"persists":            "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end\nif tonumber(ARGV[3] or '0') > 0 then return redis.call('expire', KEYS[1], ARGV[3]) end\nredis.call('persist', KEYS[1])\nreturn 1",
	"recreates":           "local held = redis.call('get', KEYS[1])\nif not held then\n return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0\nelseif held == ARGV[1] then\n return redis.call('pexpire', KEYS[1], ARGV[2])\nend\nreturn -1",
	"touch or set":        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) elseif redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 else return 0 end",
	"array of results":    "local out = {}\nfor i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then out[i] = redis.call('pexpire', key, ARGV[2]) else out[i] = 0 end end\nreturn out",
	"true or false":       "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return true end return false",
	"getex":               "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('getex', KEYS[1], 'PX', ARGV[2]) end return false",
	"keeps its time":      "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'KEEPTTL') end return 0",
	"does nothing":        "if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end return 0",
}

func extendScenarios() []Scenario {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(ExtendScripts)) {
		text, keys := ExtendScripts[name], []string{"lock:{n}"}
		all = append(all, Scenario{"extend: " + name, []step{
			eval(text, keys, "mine", "300000"),
			line("DEL lock:{n}"),
			line("SET lock:{n} mine PX 200000 NX"),
			eval(text, keys, "another", "300000"),
			line("PTTL lock:{n}").by(remaining),
			eval(text, keys, "mine", "300000"),
			line("PTTL lock:{n}").by(remaining),
			eval(text, keys, "mine", "100000"),
			line("PTTL lock:{n}").by(remaining),
			line("GET lock:{n}"),
			evalsha(text, keys, "mine", "400000", "500"),
			line("PTTL lock:{n}").by(remaining),
			line("PERSIST lock:{n}"),
			evalsha(text, keys, "mine", "300000"),
			line("TTL lock:{n}").by(remainingSeconds),
		}})
	}
	return append(all, remainingTimes()...)
}

// remainingTimes are scripts that return a lock's time to live.
func remainingTimes() []Scenario {
	texts := map[string]string{
		"value and time":       "return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}",
		"bsm: -3 if not mine":  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) else return -3 end",
		"pottery: 0 if not":    "if redis.call('get', KEYS[1]) == ARGV[1] then local left = redis.call('pttl', KEYS[1]) return (left > 0) and left or 0 end return 0",
		"aioredlock: or error": "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('ttl', KEYS[1]) end return redis.error_reply('ERROR')",
		"as text":              "return tostring(redis.call('exists', KEYS[1])) .. ':' .. (redis.call('get', KEYS[1]) or '')",
		"clock of the server":  "local t = redis.call('TIME') redis.call('SET', KEYS[1], 'probe', 'PX', 50000) return {tonumber(t[1]) * 1000, redis.call('PEXPIRETIME', KEYS[1])}",
	}
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text, keys, unit := texts[name], []string{"lock:{n}"}, remaining
		if strings.Contains(text, "'ttl'") {
			unit = remainingSeconds
		}
		all = append(all, Scenario{"remaining time: " + name, []step{
			eval(text, keys, "mine").by(unit),
			line("DEL lock:{n}"),
			line("SET lock:{n} mine NX PX 100000"),
			eval(text, keys, "mine").by(unit),
			evalsha(text, keys, "another").by(unit),
			line("SET lock:{n} mine"),
			eval(text, keys, "mine").by(unit),
		}})
	}
	return all
}
