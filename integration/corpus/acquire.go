package corpus

import (
	"maps"
	"slices"
)

// AcquireScripts take the lock KEYS[1] with the value ARGV[1] for ARGV[2] milliseconds.
// Each has its own replies and its own answer to a holder that takes the lock again.
var AcquireScripts = map[string]string{
	"set nx":              `return redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2])`,
	"one or zero":         "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0",
	"setnx and pexpire":   "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 else return 0 end",
	"reply of pexpire":    "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
	"reply of setnx":      "local ok = redis.call('setnx', KEYS[1], ARGV[1]) if ok == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) end return ok",
	"true and false":      "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) return true end return false",
	"nothing on success":  "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
	"setNx is always so":  "if redis.call('setNx',KEYS[1],ARGV[1]) then if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pExpire',KEYS[1],ARGV[2]) else return 0 end end",
	"extends another's":   "local ok = redis.call('setnx', KEYS[1], ARGV[1])\nredis.call('pexpire', KEYS[1], ARGV[2])\nreturn ok",
	"redlock gem":         "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] ~= 'no') or redis.call('get', KEYS[1]) == ARGV[1] then\n  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend",
	"aioredlock":          "local held = redis.call('get', KEYS[1])\nif held == false or held == ARGV[1] then\n  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\nend\nreturn redis.error_reply('ERROR')",
	"error of two words":  "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.status_reply('TAKEN') end return redis.error_reply('BUSY_LOCK held by another')",
	"spring":              "local held = redis.call('GET', KEYS[1])\nif held == ARGV[1] then\n  redis.call('PEXPIRE', KEYS[1], ARGV[2])\n  return true\nelseif not held then\n  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return true\nend\nreturn false",
	"symfony on strings":  "if redis.call('GET', KEYS[1]) == ARGV[1] then\n  return redis.call('PEXPIRE', KEYS[1], ARGV[2])\nelseif redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then\n  return 1\nelse\n  return 0\nend",
	"by prefix":           "if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return redis.status_reply('OK') end\nlocal size = 3\nif redis.call('getrange', KEYS[1], 0, size - 1) == string.sub(ARGV[1], 1, size) then\n  return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])\nend",
	"laravel add":         "return redis.call('exists', KEYS[1]) < 1 and redis.call('setex', KEYS[1], math.floor(ARGV[2] / 1000), ARGV[1])",
	"time if busy":        "if redis.call('exists', KEYS[1]) == 0 then\n  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return nil\nend\nreturn redis.call('pttl', KEYS[1])",
	"absolute, then read": "local ok = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PXAT', 4102444800000)\nredis.call('GET', KEYS[1])\nreturn ok",
	"forced":              "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return redis.call('GET', KEYS[1])",
	"who has it":          "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'GET', 'PX', ARGV[2])",
	"redis-py 2":          "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then\n if ARGV[2] ~= '' then redis.call('pexpire', KEYS[1], ARGV[2]) end\n return 1\nend\nreturn 0",
	"with a fence":        "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('incr', KEYS[1] .. ':fence') end return -1",
	"counts who came":     "redis.call('hincrby', KEYS[1] .. ':asked', ARGV[1], 1) return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
}

func acquireScenarios() []Scenario {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(AcquireScripts)) {
		text, keys := AcquireScripts[name], []string{"lock:{n}"}
		all = append(all, Scenario{"acquire: " + name, []step{
			eval(text, keys, "token-1", "200000"),
			line("PTTL lock:{n}").by(remaining),
			eval(text, keys, "another-2", "100000").by(remaining),
			line("GET lock:{n}"),
			eval(text, keys, "token-1", "300000", "no").by(remaining),
			line("PTTL lock:{n}").by(remaining),
			eval(text, keys, "token-1", "300000").by(remaining),
			evalsha(text, keys, "tokens", "300000").by(remaining),
			line("GET lock:{n}"),
			line("DEL lock:{n}"),
			evalsha(text, keys, "another-2", "300000", "no"),
			evalsha(text, keys, "another-2", "200000").by(remaining),
			line("GET lock:{n}"),
			eval(text, keys, "fourth", "-1").by(remaining),
			line("UNLINK lock:{n}"),
			eval(text, keys, "fifth", "0"),
			eval(text, keys, "fifth", "soon"),
			line("EXISTS lock:{n}"),
			line("LPUSH lock:{n} list"),
			eval(text, keys, "sixth", "200000").by(remaining),
			line("TYPE lock:{n}"),
		}})
	}
	return all
}
