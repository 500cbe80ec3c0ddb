package unruled

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
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

// TestQuestions asks those in testdata: the pattern of a key, the shape of a script's text (both as they are or in Go's
// quotes), and of runs of unknown scripts (a number and the ms) whether one lasts, whether it is the first, and whether one
// has lasted.
func TestQuestions(t *testing.T) {
	datatest.Run(t, func(t *testing.T, question string) string {
		kind, rest, _ := strings.Cut(question, " ")
		text := rest
		if unquoted, err := strconv.Unquote(rest); err == nil {
			text = unquoted
		}
		switch kind {
		case "pattern":
			glob := string(patternOf(nil, []byte(text)))
			if !resp.GlobMatch(glob, []byte(text)) {
				t.Errorf("%q does not match its pattern %q", text, glob)
			}
			return strconv.Quote(glob)
		case "shape":
			return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%+v", ShapeOf(7, []byte(text))), "{ID:7 "), "}")
		}
		var u unread
		var answers []string
		for run := range strings.FieldsSeq(rest) {
			var sha uint64
			var ms int64
			if n, _ := fmt.Sscanf(run, "%d@%d", &sha, &ms); n < 2 {
				t.Fatalf("unknown: %s", question)
			}
			lasts, first := u.add(sha, ms)
			answers = append(answers, fmt.Sprint(lasts, "/", first, "/", u.lasts))
		}
		return strings.Join(answers, " ")
	})
}

// Long texts are those of job queues.
func TestALongTextSaysNothing(t *testing.T) {
	const text = "if x then redis.call('del') end"
	for size, deletes := range map[int]bool{longestShape: true, longestShape + 1: false} {
		if got := ShapeOf(7, []byte(text+strings.Repeat(" ", size-len(text)))); got != (Shape{ID: 7, Deletes: deletes}) {
			t.Errorf("%d bytes: %+v", size, got)
		}
	}
}

func FuzzPatternOf(f *testing.F) {
	for _, key := range []string{"lock:17", "a*-1", "\x00\xff?", strings.Repeat("x*1", 60), "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "4-5.6"} {
		f.Add([]byte(key))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		glob := patternOf(nil, key)
		if !resp.GlobMatch(string(glob), key) || len(glob) > longestPattern+1 {
			t.Errorf("%q becomes %q", key, glob)
		}
	})
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
