package redlock

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Releases as lock libraries spell them.
var releaseTexts = map[string]string{
	"redis-py": `
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
    `,
	"one line":          `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`,
	"mixed case":        `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`,
	"upper case, LF":    "if redis.call('GET',KEYS[1])==ARGV[1]\nthen\n\treturn redis.call('DEL',KEYS[1])\nelse\n\treturn 0\nend",
	"CRLF and comments": "-- Release -- [[ it\r\nif (redis.call('get', KEYS[1]) == ARGV[1]) then --[[ mine ]]\r\n  return redis.call('del', KEYS[1]) --[==[ ]] ]==]\r\nend\r\nreturn 0",
	"spaced":            "if redis . call ( 'get' , KEYS[1] ) == ARGV[1] then return redis\n.call\n(\n'del', KEYS[1]) end",
	"Valkey":            `if server.call("get",KEYS[1]) == ARGV[1] then return server.call("del",KEYS[1]) else return 0 end`,
	"ARGV as key":       `if redis.call('get', ARGV[1]) == ARGV[2] then return redis.call('del', ARGV[1]) else return 0 end`,
	"redsync": `
	local val = redis.call("GET", KEYS[1])
	if val == ARGV[1] then
		return redis.call("DEL", KEYS[1])
	elseif val == false then
		return -1
	else
		return 0
	end`,
	"node-redlock": `
  local count = 0
  for i, key in ipairs(KEYS) do
    -- Only remove entries for *this* lock value.
    if redis.call("get", key) == ARGV[1] then
      redis.pcall("del", key)
      count = count + 1
    end
  end
  -- Return the number of entries removed.
  return count`,
	"all or nothing": `
  local values = redis.call("mget", unpack(KEYS))
  for i, _ in ipairs(KEYS) do if values[i] ~= ARGV[1] then return nil end end
  redis.call("del", unpack(KEYS))
  return redis.status_reply("OK")`,
	"Spring": `
local val = redis.call('get', KEYS[1])
if val == ARGV[1] then
	redis.call('unlink', KEYS[1])
	redis.call('publish', ARGV[2], KEYS[1])
	return true
end
return false`,
	"errors": `
local identifier = redis.call('get', KEYS[1])
if not identifier then return redis.status_reply('OK')
elseif identifier == ARGV[1] then return redis.call('del', KEYS[1])
else return {err = "ERROR"} end`,
	"functions":       `local function mine(k) return redis.call('get', k) == ARGV[1] end if mine(KEYS[1]) then return redis.call('del', KEYS[1]) end`,
	"prefix":          `if redis.call("getrange", KEYS[1], 0, ARGV[2] - 1) ~= ARGV[1]:sub(1, ARGV[2]) then return false end return redis.call("del", KEYS[1])`,
	"hash":            `if redis.call('hget', KEYS[1], 'owner') == ARGV[1] then return redis.call('del', KEYS[1], KEYS[2]) end return 0`,
	"natively":        `return redis.call('DELIFEQ', KEYS[1], ARGV[1])`,
	"only reads":      `return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}`,
	"numbers":         `local t = redis.call('TIME')[1] * 1e3 + .5 + 0x10 if redis.call('get', KEYS[1]) == tostring(t) then redis.call('del', KEYS[1]) end`,
	"does nothing":    `return 1`,
	"is empty":        ``,
	"deceptive texts": `local s = "redis.call('set')" local l = [[redis.call('set')]] if redis.call('get', s) == l then redis.call('del', s) end`,
}

// What else lock libraries send, and what tries to look like a release.
var otherTexts = map[string]string{
	"acquire":                `return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`,
	"extend":                 `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`,
	"re-entrant":             `local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('del', KEYS[1]) redis.call('set', KEYS[1], ARGV[1]) end`,
	"signal list":            `if redis.call("get", KEYS[1]) ~= ARGV[1] then return 1 end redis.call("del", KEYS[2]) redis.call("lpush", KEYS[2], 1) redis.call("del", KEYS[1]) return 0`,
	"counter":                `if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end local n = redis.call('hincrby', KEYS[1], ARGV[3], -1) if n == 0 then redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1]) end`,
	"member":                 `return redis.call('zrem', KEYS[1], ARGV[1])`,
	"unconditional":          `return redis.call('del', KEYS[1])`,
	"unconditional, told":    `if redis.call('del', KEYS[1]) == 1 then redis.call('publish', KEYS[2], ARGV[1]) return 1 else return 0 end`,
	"unconditional, found":   `if redis.call('exists', KEYS[1]) == 1 then return redis.call('del', KEYS[1]) end`,
	"looks too late":         `redis.call('del', KEYS[1]) return redis.call('get', KEYS[1]) == ARGV[1]`,
	"compares nothing":       `local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) return v`,
	"dynamic name":           `return redis.call(ARGV[1], KEYS[1])`,
	"computed name":          `return redis.call('g' .. 'et', KEYS[1])`,
	"conditional name":       `return redis.call('get' and 'set', KEYS[1], 'x')`,
	"name in brackets":       `return redis.call(('set'), KEYS[1], 'x')`,
	"escaped name":           `return redis.call('s\101t', KEYS[1], 'x')`,
	"long name":              `return redis.call([[set]], KEYS[1], 'x')`,
	"call without brackets":  `return redis.call'ping'`,
	"alias":                  `local call = redis.call return call('set', KEYS[1], 'x')`,
	"alias of redis":         `local r = redis return r.call('set', KEYS[1], 'x')`,
	"index":                  `return redis['call']('set', KEYS[1], 'x')`,
	"method":                 `return redis:call('set', KEYS[1], 'x')`,
	"passed on":              `return pcall(redis.call, 'set', KEYS[1], 'x')`,
	"in a table":             `local t = {redis, redis} return t[1].call('set', KEYS[1], 'x')`,
	"loadstring":             `return loadstring("return redis.call('set', KEYS[1], 'x')")()`,
	"loadstring, hidden":     `do local loadstring = 1 end return loadstring("redis.call('set', KEYS[1], 'x')")()`,
	"environment":            `return getfenv()['redis']['call']('set', KEYS[1], 'x')`,
	"globals":                `return _G.redis.call('set', KEYS[1], 'x')`,
	"iterated globals":       `for k, v in pairs(_G) do if k == 'redis' then v.call('set', KEYS[1], 'x') end end`,
	"metatable":              `return getmetatable(_G).__index`,
	"unknown global":         `return run('set', KEYS[1], 'x')`,
	"unknown member":         `redis.set_repl(redis.REPL_NONE)`,
	"shadowed":               `local redis = {call = function() end} redis.call('get', 'k')`,
	"assigned":               `redis.call = nil`,
	"comment ends at CR":     "-- comment\rredis.call('set', KEYS[1], 'x')",
	"comment is no block":    "--[=redis\nredis.call('set', KEYS[1], 'x')\n]=]",
	"block ends":             "--[[ ]] redis.call('set', KEYS[1], 'x')",
	"block of another level": "--[==[ ]=] ]==] redis.call('set', KEYS[1], 'x')",
	"string ends":            `local s = "\\" redis.call('set', KEYS[1], 'x')`,
	"string goes on":         `local s = "\" redis.call('get', KEYS[1])`,
	"string is cut":          "local s = 'a\nb'",
	"block is open":          "--[[ ",
	"bracket is open":        "return [==[ ]]",
	"flags":                  "#!lua flags=no-writes\nreturn 1",
	"byte order mark":        "\xef\xbb\xbfreturn 1",
	"letters of elsewhere":   "local \xe9 = 1",
	"getex":                  `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('getex', KEYS[1], 'PX', 1) end`,
	"sort":                   `return redis.call('sort', KEYS[1], 'STORE', KEYS[2])`,
	"nested":                 `return redis.call('get', redis.call('incr', KEYS[1]))`,
}

func TestOnlyDeletes(t *testing.T) {
	for name, text := range releaseTexts {
		if !onlyDeletes([]byte(text)) {
			t.Errorf("%s is taken for something else", name)
		}
	}
	for name, text := range otherTexts {
		if onlyDeletes([]byte(text)) {
			t.Errorf("%s is taken for a release", name)
		}
	}
}

// The texts above are real scripts: a server runs them, or they are no Lua.
func TestReleasesDoWhatTheyAreTakenFor(t *testing.T) {
	m := startLiveMaster(t)
	run := func(text string) effect {
		m.must("SET", "k", "token", "PX", "100000")
		before := m.conn.look("k")
		m.do("EVAL", text, "2", "k", "k2", "token", "5", "x", "ping")
		return change(before, m.conn.look("k"))
	}
	for name, text := range releaseTexts {
		// A server of today knows neither of these.
		text = strings.ReplaceAll(text, "server.", "redis.")
		if e := run(text); e != keyKept && e != keyDeleted {
			t.Errorf("%s: the key was %v", name, e)
		}
	}

	// Pieces of scripts put together at random: whatever a server makes of
	// them, none that passes may write.
	var pieces []string
	for _, texts := range []map[string]string{releaseTexts, otherTexts} {
		for _, text := range texts {
			for piece := range strings.SplitAfterSeq(text, " ") {
				pieces = append(pieces, piece)
			}
			pieces = append(pieces, text+"\n")
		}
	}
	slices.Sort(pieces)
	random := rand.New(rand.NewPCG(5, 6))
	passed := 0
	for range 4000 {
		var text strings.Builder
		for range 1 + random.IntN(4) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		if !onlyDeletes([]byte(text.String())) {
			continue
		}
		passed++
		if e := run(text.String()); e != keyKept && e != keyDeleted {
			t.Fatalf("%q: the key was %v", text.String(), e)
		}
	}
	if passed < 100 {
		t.Errorf("only %d passed: the test tests nothing", passed)
	}
}

func FuzzOnlyDeletes(f *testing.F) {
	for _, text := range releaseTexts {
		f.Add([]byte(text))
	}
	for _, text := range otherTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !onlyDeletes(text) {
			return
		}
		for _, call := range []string{"\n; redis.call('set', KEYS[1], 'x')", "\n; local f = redis", "\n; loadstring('x')()"} {
			if onlyDeletes(append(slices.Clone(text), call...)) {
				t.Errorf("with %q behind it is still a release", call)
			}
		}
	})
}
