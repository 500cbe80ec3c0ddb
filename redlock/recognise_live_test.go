package redlock

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/script"
)

// What the key of a recognised script may hold before it runs.
var heldBefore = map[string][]string{
	"nothing":                 nil,
	"the owner's":             {"SET", "lock", "mine", "PX", "50000"},
	"the owner's, for ever":   {"SET", "lock", "mine"},
	"the owner's, about over": {"SET", "lock", "mine", "PX", "20000"},
	"another's":               {"SET", "lock", "another", "PX", "50000"},
	"nobody's":                {"SET", "lock", ""},
	"a hash":                  {"HSET", "lock", "mine", "mine"},
	"a list":                  {"RPUSH", "lock", "mine"},
}

// releaseCommand is a client's command for a release, with the arguments that it needs and
// one more.
func releaseCommand(r *script.Release, name, text string) []string {
	command := []string{name, text, "1", "lock", "mine", "5000", "5000"}
	if call, fits := r.In(bytesOf(command)); fits && string(call.Owner) != "mine" { // the key is an argument, too
		command = []string{name, text, "1", "lock", "lock", "mine", "5000"}
	}
	return command
}

// TestRecognisedScriptsAnswerAsOnePlainRedis is the proof. Whatever the key holds, a
// recognised script gives the same reply as a single server, byte for byte, and leaves the
// same keys. So does its examined run.
func TestRecognisedScriptsAnswerAsOnePlainRedis(t *testing.T) {
	plain := startLiveMaster(t)
	resp3 := plain.dial()
	resp3.do("HELLO", "3")
	s := startLiveSet(t, 3)
	tried := 0
	texts := livetest.Corpus(t, "../integration")
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		release, certain := script.Recognise([]byte(texts[name]))
		if !certain {
			continue
		}
		sha := sha1Of([]byte(texts[name]))
		for before, held := range heldBefore {
			for _, protocol := range []int{2, 3} {
				for _, command := range [][]string{releaseCommand(release, "EVAL", texts[name]), releaseCommand(release, "evalsha", strings.ToUpper(sha))} {
					r := RunRequest{Keys: [][]byte{[]byte("lock")}, Args: bytesOf(command), RESP3: protocol == 3}
					if command[0] == "evalsha" {
						r.Scripts = [][]byte{[]byte(texts[name])}
						if resp.IsError(plain.do("SCRIPT", "LOAD", texts[name])) {
							continue // it does not compile
						}
					}
					s.prepare(plain, held)
					conn := plain.conn
					if r.RESP3 {
						conn = resp3
					}
					want := conn.do(command...)
					s.examined.one.Store(false)
					o := s.Run(t.Context(), r)
					s.wantAs(plain, o, want, !s.examined.one.Load(), name+", run plain, where the key holds "+before)
					examined := unrecognised(r)
					for _, text := range examined.Scripts {
						plain.must("SCRIPT", "LOAD", string(text))
					}
					s.prepare(plain, held)
					want = conn.ask(resp.AppendCommand(nil, examined.Args...), 1)[0]
					o = s.Run(t.Context(), examined)
					s.wantAs(plain, o, want, s.examined.one.Load(), name+", examined, where the key holds "+before)
					tried++
				}
			}
		}
	}
	if tried < 400 {
		t.Errorf("only %d were tried", tried)
	}
}

// unrecognised is the same request with a script that is not recognised, because of the
// backslash in it.
func unrecognised(r RunRequest) RunRequest {
	text, behind := r.Args[1], []byte("\n--\\")
	r.Args = slices.Clone(r.Args)
	if len(r.Scripts) > 0 {
		text = slices.Concat(r.Scripts[0], behind)
		r.Scripts, r.Args[1] = [][]byte{text}, []byte(sha1Of(text))
	} else {
		r.Args[1] = slices.Concat(text, behind)
	}
	return r
}

func sha1Of(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// prepare gives plain and all masters the same keys.
func (s *liveSet) prepare(plain *liveMaster, held []string) {
	s.t.Helper()
	s.awaitIdle() // earlier commands must not meet the new keys
	servers := slices.Clone(s.masters)
	if plain != nil {
		servers = append(servers, plain)
	}
	for _, m := range servers {
		m.must("DEL", "lock")
		if held != nil {
			m.must(held...)
		}
	}
}

// wantAs compares an outcome, and the keys it left, with those of one plain server.
func (s *liveSet) wantAs(plain *liveMaster, o Outcome, want []byte, ok bool, what string) {
	s.t.Helper()
	if !ok || o.Verdict == NoQuorum || !bytes.Equal(o.Reply, want) {
		s.t.Errorf("%s: %v %v %q, and one Redis %q", what, ok, o.Verdict, o.Reply, want)
	}
	content, left := plain.dump("lock"), ttlOf(plain)
	for i, m := range s.masters {
		for end := time.Now().Add(livePatience); ; time.Sleep(time.Millisecond) {
			if bytes.Equal(m.dump("lock"), content) && effect.Near(ttlOf(m), left, 5000) {
				break
			}
			if time.Now().After(end) {
				s.t.Fatalf("%s: master %d is left with another key", what, i+1)
			}
		}
	}
}

func ttlOf(m *liveMaster) int64 {
	left, _ := resp.ParseInteger(m.must("PTTL", "lock"))
	return left
}

// If the arguments do not fit the recognised script, it is examined, and the reply still is
// that of one Redis.
func TestRecognisedScriptsWithOddWords(t *testing.T) {
	const extend = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end`
	const seconds = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('expire', KEYS[1], ARGV[2]) else return 0 end`
	const rewrite = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) else return 0 end`
	plain := startLiveMaster(t)
	s := startLiveSet(t, 3)
	commands := [][]string{
		{"EVAL", releaseByValue, "1", "lock"},
		{"EVAL", releaseByValue, "0", "mine"},
		{"EVAL", releaseByValue, "1", "lock", "mine", "more"},
		{"EVAL_RO", releaseByValue, "1", "lock", "mine"},
	}
	for _, text := range []string{extend, seconds, rewrite} {
		commands = append(commands, []string{"EVAL", text, "1", "lock", "mine"})
		for _, ttl := range []string{"", "0", "-1", "-100000", "soon", "1.5", "1e5", " 50000", "050000", "+50000", "9223372036854775807", "92233720368547758070", "20000"} {
			commands = append(commands, []string{"EVAL", text, "1", "lock", "mine", ttl})
		}
	}
	for before, held := range heldBefore {
		for _, command := range commands {
			s.prepare(plain, held)
			want := plain.do(command...)
			r := RunRequest{Keys: [][]byte{[]byte("lock")}, Args: bytesOf(command), ReadOnly: command[0] == "EVAL_RO"}
			s.wantAs(plain, s.Run(t.Context(), r), want, true, strings.Join(command[2:], " ")+" where the key holds "+before)
		}
	}
}

// A master that forgot the scripts after they were loaded gets the text again, and no
// client notices.
func TestRecognisedScriptsAreLoadedAgain(t *testing.T) {
	s := startLiveSet(t, 3)
	r := RunRequest{
		Keys:    [][]byte{[]byte("lock")},
		Args:    bytesOf([]string{"EVALSHA", sha1Of([]byte(releaseByValue)), "1", "lock", "mine"}),
		Scripts: [][]byte{[]byte(releaseByValue)},
	}
	for _, flushed := range []int{0, 3, 1, 2} {
		s.prepare(nil, heldBefore["the owner's"])
		for _, m := range s.masters[:flushed] {
			m.must("SCRIPT", "FLUSH")
		}
		wantReply(t, s.Run(t.Context(), r), ":1\r\n")
		s.eventuallyGone("lock")
	}
}
