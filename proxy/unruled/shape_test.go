package unruled

import (
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// The corpus has the scripts of lock libraries in other words, and scripts that are no locks' (its file lua.go).
func TestShapeOfCorpus(t *testing.T) {
	exceptions := map[string]string{
		"corpus_acquire: forced": "it asks for nobody",
		"corpus_release: reset":  "it asks for nobody",
	}
	seen := map[string]int{}
	for name, text := range livetest.Corpus(t, "../../integration") {
		file, _, _ := strings.Cut(strings.TrimPrefix(name, "corpus_"), ":")
		s := ShapeOf(1, []byte(text))
		good := true
		switch file {
		case "acquire":
			good = s.Takes && !s.Deletes
		case "release":
			good = s.Deletes || s.Extends
		case "lua":
			good = s == Shape{ID: 1}
		}
		if _, excepted := exceptions[name]; good == excepted {
			t.Errorf("%s is %+v, and that is wrong: %v\n%s", name, s, !excepted, text)
		}
		seen[file]++
	}
	for _, file := range []string{"acquire", "release", "lua"} {
		if seen[file] < 10 {
			t.Errorf("the corpus has only %d scripts in %s", seen[file], file)
		}
	}
}

func TestShape(t *testing.T) {
	for text, want := range map[string]Shape{
		// rate limits and caches
		"local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], 60) end return n":                                   {},
		"redis.call('zremrangebyscore', KEYS[1], 0, ARGV[1]) if redis.call('zcard', KEYS[1]) < 9 then redis.call('zrem', KEYS[1], ARGV[2]) end": {Deletes: true},
		"if redis.call('hincrby', KEYS[1], ARGV[1], 1) == 1 then redis.call('publish', 'c', 'm') end redis.call('expire', KEYS[1], 60)":         {},              // who is present
		"if redis.call('setnx', KEYS[2], 1) == 0 then return end redis.call('expire', KEYS[2], 9) redis.call('hdel', KEYS[1], ARGV[1])":         {Deletes: true}, // Redisson's RMapCache
		"if redis.call('setnx',KEYS[1],1) == 0 then redis.call('expire', KEYS[12], 9) redis.call('del', KEYS[12]) end":                          {},
		"if redis.call('setnx' , KEYS[1], 1) == 1 then redis.call('expire', KEYS[":                                                              {Takes: true},
		"return redis.call('del', KEYS[1])":                                             {},
		"-- if mine then redis.call('del')\nreturn redis.call('set', KEYS[1], 1)":       {},
		"redis.call('set', KEYS[1], ARGV[1], 'PX', 5)":                                  {}, // without a condition
		"if redis.call('exists', KEYS[1]) == 0 then redis.call('set', KEYS[1], 1) end":  {}, // without an end
		"if redis.call('get', KEYS[1]) == ARGV[1] then redis.call(\"UNLINK\", KEYS[1])": {Deletes: true},
		"if x then redis.call('del":                                                     {}, // an open quote
		"if x then redis.call('del') end" + strings.Repeat(" ", longestShape):           {},
		"": {},
	} {
		want.ID = 7
		if got := ShapeOf(7, []byte(text)); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

func FuzzShape(f *testing.F) {
	for _, text := range livetest.Corpus(f, "../../integration") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { ShapeOf(1, text) }) // no text makes it panic or hang
}

func BenchmarkShape(b *testing.B) {
	text := []byte("local held = redis.call('GET', KEYS[1])\nif held == ARGV[1] then\n  redis.call('PEXPIRE', KEYS[1], ARGV[2])\n  return true\nelseif not held then\n  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return true\nend\nreturn false")
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ShapeOf(1, text)
	}
}
