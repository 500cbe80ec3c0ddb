package corpus

import (
	"maps"
	"slices"
	"strings"

	"redlock-proxy/integration/rig"
)

// luaReplies are scripts whose replies have every form that a Lua value can take.
var luaReplies = map[string]string{
	"nothing":                 "redis.call('set', KEYS[1], ARGV[1])",
	"nil":                     "redis.call('set', KEYS[1], ARGV[1]) return nil",
	"true":                    "redis.call('set', KEYS[1], ARGV[1]) return true",
	"false":                   "redis.call('set', KEYS[1], ARGV[1]) return false",
	"integer":                 "redis.call('set', KEYS[1], ARGV[1]) return 9007199254740991",
	"float cut off":           "redis.call('set', KEYS[1], ARGV[1]) return -3.99",
	"float in a table":        "return {1.5, 2.99, -0.5, '1.5', tostring(1.5)}",
	"status":                  "redis.call('set', KEYS[1], ARGV[1]) return {ok = 'FINE'}",
	"status of a command":     "return redis.call('set', KEYS[1], ARGV[1])",
	"error table":             "return {err = 'ERR chosen by the script'}",
	"error without code":      "return redis.error_reply('lower case text')",
	"error with a minus":      "return redis.error_reply('-CODE of its own')",
	"error of one word":       "return redis.error_reply('BUSY')",
	"nested tables":           "return {1, {2, {3, {4, {}}}}, {'a', {'b'}}, {}}",
	"nil ends a table":        "return {1, 2, nil, 4}",
	"false in a table":        "return {1, false, 3, true, {false}}",
	"map is an empty table":   "return {a = 1, b = 2}",
	"map and list":            "return {1, 2, a = 3}",
	"status in a table":       "return {redis.call('set', KEYS[1], ARGV[1]), redis.status_reply('Q'), {err = 'ERR in a table'}}",
	"pcall error in a table":  "redis.call('set', KEYS[1], ARGV[1]) return {redis.pcall('lpush', KEYS[1], 1), redis.pcall('get', KEYS[1])}",
	"bytes":                   "return '\\0\\r\\n\\255' .. ARGV[1]",
	"empty text":              "redis.call('set', KEYS[1], '') return redis.call('get', KEYS[1])",
	"big text":                "redis.call('set', KEYS[1], string.rep('x', 300000)) return redis.call('get', KEYS[1])",
	"big table":               "local t = {} for i = 1, 5000 do t[i] = i .. ':' .. ARGV[1] end return t",
	"keys and arguments":      "return {KEYS, ARGV, #KEYS, #ARGV}",
	"sha1hex":                 "return redis.sha1hex(ARGV[1])",
	"cjson":                   "local v = cjson.decode('{\"a\":[1,2,{\"b\":null}]}') redis.call('set', KEYS[1], cjson.encode(v.a[2])) return cjson.encode({v.a[1], v.a[3].b == cjson.null})",
	"cmsgpack":                "local p = cmsgpack.pack({1, 'two', {3}}) redis.call('set', KEYS[1], p) return {p, cmsgpack.unpack(redis.call('get', KEYS[1]))}",
	"struct":                  "local p = struct.pack('>I4s', 258, ARGV[1]) redis.call('set', KEYS[1], p) return {p, struct.unpack('>I4s', p)}",
	"bit":                     "return {bit.band(12, 10), bit.tohex(255), bit.lshift(1, 4)}",
	"log":                     "redis.log(redis.LOG_DEBUG, 'from a script') redis.call('set', KEYS[1], ARGV[1]) return redis.LOG_WARNING",
	"setresp 3":               "redis.setresp(3) redis.call('hset', KEYS[1], 'f', ARGV[1]) return redis.call('hgetall', KEYS[1])",
	"setresp 3 set":           "redis.setresp(3) redis.call('del', KEYS[1]) redis.call('sadd', KEYS[1], ARGV[1]) return redis.call('smembers', KEYS[1])",
	"setresp 3 double":        "redis.setresp(3) redis.call('zadd', KEYS[1], 1.5, ARGV[1]) return {redis.call('zscore', KEYS[1], ARGV[1]), redis.call('zscore', KEYS[1], 'no')}",
	"setresp 3 booleans":      "redis.setresp(3) return {true, false, {true}}",
	"setresp 3 own values":    "redis.setresp(3) return {{double = 2.25}, {map = {a = 1}}, {set = {x = true}}, {big_number = '12345678901234567890'}, {verbatim_string = {format = 'txt', string = 'text'}}}",
	"own double":              "return {double = 3.5}",
	"own map":                 "redis.call('set', KEYS[1], ARGV[1]) return {map = {key = 'value'}}",
	"setresp 2":               "redis.setresp(2) redis.call('hset', KEYS[1], 'f', ARGV[1]) return redis.call('hgetall', KEYS[1])",
	"hgetall":                 "redis.call('hset', KEYS[1], 'f', ARGV[1], 'g', 2) return redis.call('hgetall', KEYS[1])",
	"zscore":                  "redis.call('zadd', KEYS[1], 1.5, 'm') return redis.call('zscore', KEYS[1], 'm')",
	"zrange withscores":       "redis.call('zadd', KEYS[1], 1.5, 'm', 2, 'n') return redis.call('zrange', KEYS[1], 0, -1, 'WITHSCORES')",
	"incrbyfloat":             "return {redis.call('incrbyfloat', KEYS[1], '1.25'), redis.call('incrbyfloat', KEYS[1], '2')}",
	"type":                    "redis.call('rpush', KEYS[1], 1) local t = redis.call('type', KEYS[1]) return {t, t.ok, t['ok']}",
	"exists then ternary":     "return redis.call('exists', KEYS[1]) == 1 and 'yes' or 'no'",
	"acl and versions":        "return {redis.acl_check_cmd('get', KEYS[1]), type(redis.REDIS_VERSION), redis.REDIS_VERSION_NUM > 0}",
	"shebang with flags":      "#!lua flags=allow-oom\nreturn redis.call('set', KEYS[1], ARGV[1])",
	"shebang, no writes":      "#!lua flags=no-writes\nreturn redis.call('exists', KEYS[1])",
	"replicate commands":      "redis.replicate_commands() redis.set_repl(redis.REPL_ALL) return redis.call('set', KEYS[1], ARGV[1])",
	"breakpoint and debug":    "redis.breakpoint() redis.debug('x') return redis.call('set', KEYS[1], ARGV[1])",
	"keys not declared":       "redis.call('set', KEYS[1] .. ':other', ARGV[1]) return redis.call('get', KEYS[1] .. ':other')",
	"creates and deletes":     "redis.call('set', KEYS[1], ARGV[1]) return redis.call('del', KEYS[1])",
	"blocking inside":         "redis.call('rpush', KEYS[1], 1) return {redis.call('blpop', KEYS[1], 1), redis.call('blpop', KEYS[1], 1)}",
	"object and dump":         "redis.call('set', KEYS[1], 12345, 'PX', 100000) local d = redis.call('dump', KEYS[1]) redis.call('restore', KEYS[1], 0, d, 'REPLACE') return {redis.call('object', 'encoding', KEYS[1]), d, redis.call('pttl', KEYS[1])}",
	"sort":                    "redis.call('sadd', KEYS[1], 3, 1, 2) return redis.call('sort', KEYS[1])",
	"closures and coroutines": "local co = coroutine.wrap(function() coroutine.yield(redis.call('set', KEYS[1], ARGV[1])) end) return co()",
}

// luaFailures are scripts that end with an error. Some write first.
var luaFailures = map[string]string{
	"syntax error":          "if redis.call('get', KEYS[1]) then return 1",
	"not lua at all":        "{% this is no script %}",
	"empty script":          "",
	"only a comment":        "-- nothing",
	"error() with a text":   "error('raised ' .. ARGV[1])",
	"error() with a table":  "error({err = 'MYERR raised as a table'})",
	"error() after a write": "redis.call('set', KEYS[1], ARGV[1]) error('too late')",
	"assert":                "assert(redis.call('get', KEYS[1]) == 'x', 'not x')",
	"calls nil":             "return redis.nothing('get')",
	"unknown global":        "return server",
	"sets a global":         "counter = 1 return counter",
	"unknown command":       "return redis.call('nosuch', KEYS[1])",
	"wrong arity":           "return redis.call('get', KEYS[1], 'x')",
	"wrong type":            "redis.call('lpush', KEYS[1], 1) return redis.call('get', KEYS[1])",
	"wrong type, pcall":     "redis.call('lpush', KEYS[1], 1) return redis.pcall('get', KEYS[1])",
	"wrong type as text":    "redis.call('lpush', KEYS[1], 1) local e = redis.pcall('get', KEYS[1]) return e['err']",
	"lua pcall":             "local ok, e = pcall(function() return redis.call('incr', KEYS[1], 2) end) return {ok and 1 or 0, type(e)}",
	"call without command":  "return redis.call()",
	"call with a table":     "return redis.call('set', KEYS[1], {})",
	"bad shebang":           "#!python\nreturn 1",
	"bad shebang flag":      "#!lua flags=bogus\nreturn 1",
	"write where forbidden": "#!lua flags=no-writes\nreturn redis.call('set', KEYS[1], ARGV[1])",
	"not from a script":     "return redis.call('subscribe', KEYS[1])",
	"multi inside":          "return redis.call('multi')",
	"too deep":              "local function f(n) return f(n + 1) + 1 end return f(1)",
	"no such library":       "return os.time() > 0 and require('io')",
	"bad arithmetic":        "return ARGV[9] + 1",
	"comparison":            "return KEYS[1] < 1",
	"setresp 4":             "redis.setresp(4)",
}

func luaScenarios() []Scenario {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(luaReplies)) {
		all = append(all, luaScenario("lua reply: "+name, luaReplies[name]))
	}
	return append(all, cacheScenarios()...)
}

func luaFailureScenarios() []Scenario {
	var all []Scenario
	for _, name := range slices.Sorted(maps.Keys(luaFailures)) {
		all = append(all, luaScenario("lua failure: "+name, luaFailures[name]))
	}
	return all
}

func luaScenario(name, text string) Scenario {
	keys := []string{"lock:{n}"}
	return Scenario{name, []step{
		eval(text, keys, "first"),
		line("TYPE lock:{n}"),
		evalsha(text, keys, "second", "third"),
		line("EXISTS lock:{n}"),
		line("DEL lock:{n}"),
		eval(text, []string{"lock:{n}", "lock:{n}:b"}, "fourth"),
		line("TTL lock:{n}").by(remainingSeconds),
	}}
}

// cacheScenarios test how scripts get into the servers' script caches.
func cacheScenarios() []Scenario {
	const text = "return {KEYS[1] and 1, redis.call('incr', KEYS[1])}"
	keys := []string{"lock:{n}"}
	private := "-- {n}\n" + text
	sha := rig.SHA1(text)
	return []Scenario{
		{"cache: load, then run", []step{
			evalsha("-- nobody loaded this\n"+text, keys),
			cmd("EVALSHA", strings.Repeat("f", 40), "1", "lock:{n}"),
			cmd("EVALSHA", "short", "1", "lock:{n}"),
			cmd("SCRIPT", "LOAD", text),
			cmd("SCRIPT", "EXISTS", sha, strings.ToUpper(sha), strings.Repeat("0", 40)),
			cmd("EVALSHA", sha, "1", "lock:{n}"),
			cmd("EVALSHA", strings.ToUpper(sha), "1", "lock:{n}"),
			cmd("evalsha", sha, "1", "plain:{n}"),
			eval(text, []string{"plain:{n}"}),
			cmd("SCRIPT", "LOAD", "if"),
			cmd("SCRIPT", "LOAD"),
			cmd("SCRIPT", "NOSUCH"),
		}},
		{"cache: eval registers", []step{
			eval(private, keys),
			eval(private, keys),
		}},
		{"read-only forms", []step{
			cmd("EVAL_RO", "return redis.call('get', KEYS[1])", "1", "lock:{n}"),
			cmd("EVAL_RO", "return redis.call('set', KEYS[1], 1)", "1", "lock:{n}"),
			cmd("SCRIPT", "LOAD", text),
			cmd("EVALSHA_RO", sha, "1", "lock:{n}"),
			line("GET lock:{n}"),
		}},
		{"wrong numbers of keys", []step{
			cmd("EVAL", "return 1", "2", "lock:{n}"),
			cmd("EVAL", "return 1", "-1", "lock:{n}"),
			cmd("EVAL", "return 1", "x", "lock:{n}"),
			cmd("EVAL", "return #KEYS", "0", "lock:{n}"),
			cmd("EVAL", "return redis.call('incr', ARGV[1])", "0", "lock:{n}"),
			cmd("EVAL", "return 1"),
			cmd("EVALSHA", sha, "9", "lock:{n}"),
		}},
	}
}
