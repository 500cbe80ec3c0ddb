package script

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// corpus is all scripts of the suite's corpus, and those below.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	texts := livetest.Corpus(t, "../../integration")
	for prefix, own := range map[string]map[string]string{"release": releaseTexts, "other": otherTexts, "shape": shapedTexts} {
		for name, text := range own {
			texts[prefix+": "+name] = text
		}
	}
	return texts
}

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

// shapedTexts are shapes that the corpus does not have.
var shapedTexts = map[string]string{
	"windows line ends": "-- release\r\nlocal v = redis.call('get', KEYS[1])\r\nif v == ARGV[1] then\r\n  return redis.call('del', KEYS[1])\r\nend\r\nreturn 0\r\n",
	"the other way":     `if ARGV[1] ~= redis.call('get', KEYS[1]) then return nil end redis.call('unlink', KEYS[1]) return {ok = 'released'}`,
	"nested":            `local v = redis.call('get', KEYS[1]) if v then if v == ARGV[1] then redis.call('del', KEYS[1]) return 1 else return 0 end else return -1 end`,
	"nil is never":      `local v = redis.call('get', KEYS[1]) if v == nil then return 'never' elseif v ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])`,
	"second owner":      `if redis.call('get', KEYS[1]) == ARGV[2] then return redis.call('del', KEYS[1]) end return 0`,
	"second key":        `if redis.call('get', KEYS[2]) == ARGV[1] then return redis.call('del', KEYS[2]) end return 0`,
	"signal":            `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end redis.call('del', KEYS[2]) redis.call('lpush', KEYS[2], 1) redis.call('pexpire', KEYS[2], ARGV[2]) redis.call('del', KEYS[1]) return 0`,
	// None of these is a release of one key by its value, or none that every Lua reads alike.
	"escaped":            `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('d\101l', KEYS[1]) end return 0`,
	"hexadecimal":        `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0x10`,
	"long number":        `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 1234567890123456`,
	"reply of two lines": "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return {ok = [[two\nlines]]} end return 0",
	"two values":         `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]), 1 end return 0`,
	"assigns":            `local v = 1 v = redis.call('get', KEYS[1]) if v == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"server's own error": `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return redis.error_reply('-OOM no')`,
	"tonumber":           `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], tonumber(ARGV[2])) end return 0`,
	"seconds":            `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('expire', KEYS[1], ARGV[2]) return 1 else return 0 end`,
	"constant time":      `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], 90000) end return 0`,
	"rewrite":            `if redis.call('get', KEYS[1]) ~= ARGV[1] then return nil end return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2], 'xx')`,
	"creates":            `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') end return 0`,
	"another value":      `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[2], 'PX', 90000) end return 0`,
	"frees another":      `if redis.call('get', KEYS[1]) ~= ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"frees all":          `local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) if v == ARGV[1] then return 1 end return 0`,
	"two owners":         `local v = redis.call('get', KEYS[1]) if v == ARGV[1] or v == ARGV[2] then return redis.call('del', KEYS[1]) end return 0`,
	"two keys":           `if redis.call('get', KEYS[1]) == ARGV[1] and redis.call('get', KEYS[2]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"another key":        `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[2]) return 1 end return 0`,
	"takes another":      `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) redis.call('set', KEYS[2], ARGV[1]) return 1 end return 0`,
	"signals anyway":     `redis.call('lpush', KEYS[2], 1) if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"same answer":        `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end return 1`,
	"answers another":    `local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('del', KEYS[1]) return 'x' end return v`,
	"its own error":      `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return redis.error_reply('BUSY')`,
	"empty is all":       `if ARGV[1] == '' or redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"extends and frees":  `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], 5) return redis.call('del', KEYS[1]) end return 0`,
	"deletes a list":     `local v = redis.pcall('get', KEYS[1]) if v == ARGV[1] or type(v) == 'table' then return redis.call('del', KEYS[1]) end return 0`,
	"shadows":            `local KEYS = {ok = 'x'} if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"out of sight":       `if true then local v = redis.call('get', KEYS[1]) end if v == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`,
	"a call of a result": "local v = redis.call('get', KEYS[1])\n(ARGV[1]) if v == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
	"computed":           `if redis.call('get', KEYS[1]) == ARGV[1] .. '' then return redis.call('del', KEYS[1]) end return 0`,
	"persists":           `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('persist', KEYS[1]) end return 0`,
	"only longer":        `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2], 'GT') end return 0`,
	"deep":               strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000),
	"deep conditions":    strings.Repeat("if not ", 500) + "1 then return 1 end",
}

// TestRecognisedScripts keeps the list of what is recognised, so that a change
// of it is seen.
func TestRecognisedScripts(t *testing.T) {
	var list strings.Builder
	texts := corpus(t)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		r, _ := Recognise([]byte(texts[name]))
		fmt.Fprintf(&list, "%s = %s\n", name, r)
	}
	const golden = "testdata/recognised.txt"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := list.String(); got != string(want) {
		t.Errorf("%s is not what is recognised now:\n%s", golden, difference(string(want), got))
	}
}

// String is for the list of what is recognised.
func (r *Release) String() string {
	if r == nil {
		return "no"
	}
	return fmt.Sprintf("release of %v by %v, answers %v", r.key, r.owner, r.deleted)
}

func (w word) String() string {
	if w.argv {
		return fmt.Sprintf("ARGV[%d]", w.index)
	}
	return fmt.Sprintf("KEYS[%d]", w.index)
}

func (a answer) String() string {
	if a.owner {
		return "the value"
	}
	return fmt.Sprintf("%q", a.exact)
}

// difference is the lines that only one of two lists has.
func difference(a, b string) string {
	var out strings.Builder
	for _, side := range []struct{ sign, in, out string }{{"- ", a, b}, {"+ ", b, a}} {
		other := strings.Split(side.out, "\n")
		for line := range strings.Lines(side.in) {
			if !slices.Contains(other, strings.TrimSuffix(line, "\n")) {
				out.WriteString(side.sign + line)
			}
		}
	}
	return out.String()
}
