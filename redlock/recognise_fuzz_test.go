package redlock

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/resp"
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
	{" 0", " 1", " -1", " nil", " false", " true", " ARGV[1]", " redis.error_reply('X')", " {ok = 'X'}"},
	{"then", "else", "end", "return", "local v ="},
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

// TestMutatedScriptsDoWhatTheyAreTakenFor: whatever is recognised does on a
// real server what it is taken for, and tells by its answer when it did.
func TestMutatedScriptsDoWhatTheyAreTakenFor(t *testing.T) {
	server := startLiveMaster(t)
	var texts []string
	all := corpusTexts(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m := meaningOf([]byte(all[name])); m.form != noForm || strings.Contains(name, "shape") {
			texts = append(texts, all[name])
		}
	}
	random := rand.New(rand.NewPCG(7, 8))
	taken, seen := 0, map[string]bool{}
	for range 20000 {
		text := mutated(random, texts[random.IntN(len(texts))])
		m := meaningOf([]byte(text))
		if m.form == noForm || m.key == m.owner || seen[text] {
			continue
		}
		seen[text] = true
		taken++
		for before, held := range heldBefore {
			server.must("FLUSHALL")
			if held != nil {
				server.must(held...)
			}
			r := m.in(bytesOf(m.scriptCommand("EVAL", text)))
			was := server.conn.look("lock")
			reply := server.do(m.scriptCommand("EVAL", text)...)
			did, want := effect.Compare(was, server.conn.look("lock")), effect.Kept
			switch {
			case held == nil:
				want = effect.StayedAbsent
			case !strings.HasPrefix(before, "the owner's"):
			default:
				want = effect.Deleted
			}
			if m.companions != nil && resp.IsError(reply) && (did == effect.Kept || did == effect.Deleted) {
				continue // a signal that cannot be given ends the script
			}
			if strings.Contains(string(reply), "Error compiling") || strings.Contains(string(reply), "nonexistent global variable 'server'") {
				want = did // the server does not know it for a script
			}
			if did != want || string(reply) == r.answer != (did == effect.Deleted) {
				t.Fatalf("%s\nwhere the key holds %s: the key was %v, answer %q", text, before, did, reply)
			}
			if keys := strings.TrimSpace(string(server.must("DBSIZE"))); m.companions == nil && keys != ":0" && keys != ":1" {
				t.Fatalf("%s\nwhere the key holds %s: %s keys are left", text, before, keys)
			}
		}
	}
	if taken < 200 {
		t.Errorf("only %d were recognised: the test tests nothing", taken)
	}
	t.Logf("%d were recognised", taken)
}

func FuzzMeaningOf(f *testing.F) {
	for _, text := range corpusTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if meaningOf([]byte(text)).form == noForm {
			return
		}
		for _, first := range []string{"redis.call('set', KEYS[1], 'x') ", "local call = redis.call ", "if redis.call('time') then end ", "x = 1 "} {
			if m := meaningOf([]byte(first + text)); m.form != noForm {
				t.Errorf("with %q in front it is still taken for %v", first, m)
			}
		}
	})
}
