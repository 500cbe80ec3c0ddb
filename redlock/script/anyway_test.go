package script

import (
	"maps"
	"slices"
	"testing"
)

// The scripts of the corpus that delete anyway are these, and no release by value is among them.
func TestScriptsThatDeleteAnyway(t *testing.T) {
	texts := corpus(t)
	for name, text := range map[string]string{
		"Spring 5.5":        "if (redis.call('unlink', KEYS[1]) == 1) then redis.call('publish', ARGV[1], KEYS[1]) return true end return false",
		"Redisson":          "if (redis.call('del', KEYS[1]) == 1) then redis.call(ARGV[2], KEYS[2], ARGV[1]); return 1 else return 0 end",
		"python-redis-lock": "\n    redis.call('del', KEYS[2])\n    redis.call('lpush', KEYS[2], 1)\n    redis.call('pexpire', KEYS[2], ARGV[2])\n    return redis.call('del', KEYS[1])\n",
		"with brackets":     "return redis.call [[del]]",
		"renames":           "return redis.call('rename', KEYS[1], KEYS[2])",
		"renames its own":   "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('renamenx', KEYS[1], KEYS[2]) end",
		"stores":            "return redis.call('sdiffstore', KEYS[1], KEYS[2], KEYS[3])",
		"takes over":        "redis.call('del', KEYS[1]) return redis.call('set', KEYS[1], ARGV[1])",
		"counts":            "redis.call('del', KEYS[1]) return redis.call('hincrby', KEYS[1], ARGV[1], 1)",
		"after a function":  "local function free() redis.call('del', KEYS[1]) end return free()",
		"asserts":           "assert(redis.call('get', KEYS[1]) == ARGV[1]) return redis.call('del', KEYS[1])",
		"and":               "local mine = redis.call('get', KEYS[1]) == ARGV[1] return mine and redis.call('del', KEYS[1])",
		"after a comment":   "-- delete and do nothing else\nreturn redis.call('del', KEYS[1])",
		"a member":          "return redis.call('hdel', KEYS[1], ARGV[1])",
	} {
		texts["row: "+name] = text
	}
	var got []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !DeletesAnyway([]byte(texts[name])) {
			continue
		}
		got = append(got, name)
		if _, certain := Recognise([]byte(texts[name])); certain {
			t.Errorf("%s is also taken for a release by value", name)
		}
	}
	want := []string{
		"corpus_pythonredislock: reset", "corpus_redisson: force",
		"other: compares nothing", "other: looks too late", "other: unconditional", "other: unconditional, told",
		"row: Redisson", "row: Spring 5.5", "row: after a comment", "row: python-redis-lock", "row: renames", "row: stores",
		"row: with brackets",
		"shape: frees all",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
