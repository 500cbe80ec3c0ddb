package script

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// swaps are words and signs that one mistake in a script, or in the reading of
// it, puts for each other.
var swaps = [][]string{
	{"==", "~=", "<", ">="},
	{"and", "or"},
	{"not ", ""},
	{"KEYS[1]", "KEYS[2]", "ARGV[1]", "ARGV[2]"},
	{"'del'", "'unlink'", "'get'", "'exists'", "'set'", "'getdel'", "'pexpire'", "'publish'", "'lpush'", "'persist'", "'type'"},
	{"redis.call", "redis.pcall"},
	{" 0", " 1", " -1", " 010", " nil", " false", " true", " ARGV[1]", " redis.error_reply('X')", " {ok = 'X'}"},
	{"then", "else", "end", "return", "local v ="},
	{" ", "\n", "\r", "\n\r", " -- ", " --[[ ", " ]]", " [[", " --[=[ ", " ]=] ", ";", "(", ")"},
}

// mutated is a script with one to three such mistakes.
func mutated(random *rand.Rand, text string) string {
	text = strings.ReplaceAll(text, `"`, "'")
	for range 1 + random.IntN(3) {
		swap := swaps[random.IntN(len(swaps))]
		from, to := swap[random.IntN(len(swap))], swap[random.IntN(len(swap))]
		n := strings.Count(text, from)
		if from == "" || n == 0 {
			continue
		}
		at := 0
		for i := range 1 + random.IntN(n) {
			if i > 0 {
				at += len(from)
			}
			at += strings.Index(text[at:], from)
		}
		text = text[:at] + to + text[at+len(from):]
	}
	return text
}

// held is what a release's key may hold when it comes.
var held = map[string][]string{
	"nothing":               nil,
	"the owner's":           {"SET", "lock", "mine", "PX", "50000"},
	"the owner's, for ever": {"SET", "lock", "mine"},
	"another's":             {"SET", "lock", "another", "PX", "50000"},
	"nobody's":              {"SET", "lock", ""},
	"a hash":                {"HSET", "lock", "mine", "mine"},
	"a list":                {"RPUSH", "lock", "mine"},
}

// command is a client's command for the release: its words are what it needs, and
// one more.
func (r *Release) command(text string) []string {
	keys, argv := make([]string, max(1, r.highest[0])), make([]string, r.highest[1]+1)
	for _, words := range [][]string{keys, argv} {
		for i := range words {
			words[i] = "5000"
		}
	}
	set := func(w word, text string) {
		if w.argv {
			argv[w.index-1] = text
		} else {
			keys[w.index-1] = text
		}
	}
	set(r.owner, "mine")
	set(r.key, "lock")
	return slices.Concat([]string{"EVAL", text, string('0' + rune(len(keys)))}, keys, argv)
}

// TestMutatedScriptsDoWhatTheyAreTakenFor: whatever is recognised does on a
// real server what it is taken for, and tells by its answer when it did.
func TestMutatedScriptsDoWhatTheyAreTakenFor(t *testing.T) {
	server := livetest.Start(t)
	var texts []string
	all := corpus(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, certain := Recognise([]byte(all[name])); certain || strings.Contains(name, "shape") {
			texts = append(texts, all[name])
		}
	}
	random := rand.New(rand.NewPCG(7, 8))
	taken, seen := 0, map[string]bool{}
	for range 10000 {
		text := mutated(random, texts[random.IntN(len(texts))])
		r, certain := Recognise([]byte(text))
		if !certain || r.key == r.owner || max(r.highest[0], r.highest[1]) > 9 || seen[text] {
			continue
		}
		seen[text] = true
		taken++
		for before, with := range held {
			server.Must("FLUSHALL")
			if with != nil {
				server.Must(with...)
			}
			command := r.command(text)
			var args [][]byte
			for _, word := range command {
				args = append(args, []byte(word))
			}
			call, fits := r.In(args)
			was := server.Dump("lock")
			reply := string(server.Do(command...))
			is := server.Dump("lock")
			deleted := was != nil && is == nil
			unknown := strings.Contains(reply, "Error compiling") || strings.Contains(reply, "nonexistent global variable 'server'")
			switch {
			case !fits || string(call.Key) != "lock" || string(call.Owner) != "mine":
				t.Fatalf("%s: taken for a release of %q by %q", text, call.Key, call.Owner)
			case !deleted && string(is) != string(was):
				t.Fatalf("%s\nwhere the key holds %s: it was written", text, before)
			case deleted != (!unknown && strings.HasPrefix(before, "the owner's")) || deleted != (reply == string(call.Deleted)):
				t.Fatalf("%s\nwhere the key holds %s: deleted: %v, answer %q", text, before, deleted, reply)
			}
			if keys := strings.TrimSpace(string(server.Must("DBSIZE"))); keys != ":0" && is == nil || keys != ":1" && is != nil {
				t.Fatalf("%s\nwhere the key holds %s: %s keys are left", text, before, keys)
			}
		}
	}
	if taken < 200 {
		t.Errorf("only %d were recognised: the test tests nothing", taken)
	}
	t.Logf("%d were recognised", taken)
}

func FuzzRecognise(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, certain := Recognise([]byte(text)); !certain {
			return
		}
		for _, first := range []string{"redis.call('set', KEYS[1], 'x') ", "local call = redis.call ", "if redis.call('time') then end ", "x = 1 "} {
			if r, certain := Recognise([]byte(first + text)); certain {
				t.Errorf("with %q in front it is still taken for a %v", first, r)
			}
		}
	})
}

// Texts that are deep, long or cut anywhere neither panic nor take long.
func TestRecogniseIsBounded(t *testing.T) {
	for _, piece := range []string{"(", "{", "[", "if ", "not ", "- ", "a.", "f(", "do ", "function() ", "1 .. ", "x or ", "if 1 then elseif ", "[[", "--[[", "return ", "local a = "} {
		for _, text := range []string{strings.Repeat(piece, maxText/len(piece)), "return " + strings.Repeat(piece, maxText/len(piece)-7)} {
			if r, certain := Recognise([]byte(text)); certain {
				t.Errorf("%.40q is taken for a %v", text, r)
			}
		}
	}
	for _, text := range corpus(t) {
		for n := 0; n < len(text); n += 7 {
			Recognise([]byte(text[:n]))
		}
	}
}

// The words of a command may be too few for what the script looks at.
func TestReleasesFitTheirWords(t *testing.T) {
	r, certain := Recognise([]byte(releaseTexts["one line"]))
	if !certain {
		t.Fatal("not recognised")
	}
	for words, want := range map[string]bool{
		"EVAL text 1 lock mine": true, "evalsha sha 1 lock mine more": true, "EVAL text 2 lock lock mine": true,
		"EVAL text 1 lock": false, "EVAL text 0 mine": false, "EVAL text -1 lock mine": false, "EVAL text 2 lock mine": false,
		"EVAL text 1": false, "EVAL text": false, "EVAL": false, "": false, "EVAL text x lock mine": false, "EVAL text 3 lock mine": false,
	} {
		var command [][]byte
		for word := range strings.FieldsSeq(words) {
			command = append(command, []byte(word))
		}
		c, fits := r.In(command)
		if fits != want || fits && (string(c.Key) != "lock" || string(c.Owner) != "mine" || string(c.Deleted) != ":1\r\n") {
			t.Errorf("%q: %v %+v", words, fits, c)
		}
	}
}
