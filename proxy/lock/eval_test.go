package lock

import (
	"crypto/sha1"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

func TestCheckEval(t *testing.T) {
	sha := strings.Repeat("a", 40)
	for _, row := range []struct {
		Command string
		bySHA   bool
		reply   wire.Error
	}{
		{"EVAL s 0", false, ""},
		{"EVAL s 1 k", false, ""},
		{"EVAL s 1 k a b", false, ""},
		{"EVAL s x k", false, wire.ErrNotInteger},
		{"EVAL s 01 k", false, wire.ErrNotInteger},
		{"EVAL s 2 k", false, errorTooManyKeys},
		{"EVAL s 9223372036854775807 k", false, errorTooManyKeys},
		{"EVAL s -1 k", false, errorNegativeKeys},
		{"EVALSHA " + sha + " 1 k", true, ""},
		{"EVALSHA " + sha + " -1 k", true, errorNegativeKeys},
		{"EVALSHA " + sha[1:] + " x", true, errorNoScript},
	} {
		if got := checkEval(fakeLockerCall(row.Command).Args, row.bySHA); got != row.reply {
			t.Errorf("%s: %q, want %q", row.Command, got, row.reply)
		}
	}
}

// TestScriptsAreKnownByTheirSHA1: EVALSHA works once any client has sent the text.
func TestScriptsAreKnownByTheirSHA1(t *testing.T) {
	const text = `return\x201`
	sha := fmt.Sprintf("%x", sha1.Sum([]byte("return 1")))
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerReply(":1\r\n")))
	ask := func(line, want string) {
		t.Helper()
		p.locker.asked = nil
		if reply := p.ask(t, line); reply != ":1\r\n" {
			t.Errorf("%s: %q", line, reply)
		}
		if got := strings.Join(p.locker.requests(), ";"); got != want {
			t.Errorf("%s: asked %q, want %q", line, got, want)
		}
	}
	if reply := p.ask(t, "EVALSHA "+sha+" 1 k v"); reply != string(errorNoScript) || len(p.locker.asked) > 0 {
		t.Errorf("a text that nobody sent: %q, asked %q", reply, p.locker.requests())
	}
	ask("EVAL "+text+" 1 k v", "run 0 [EVAL return 1 1 k v] on [k]")
	ask("EVALSHA "+sha+" 1 k v", "run 0 [EVALSHA "+sha+" 1 k v] on [k] script return 1")
	ask("EVALSHA_RO "+strings.ToUpper(sha)+" 1 k", "run 0 [EVALSHA_RO "+strings.ToUpper(sha)+" 1 k] on [k] script return 1 readonly")
	ask("EVAL_RO "+text+" 2 k k", "run 0 [EVAL_RO return 1 2 k k] on [k] readonly")
	ask(`EVAL_RO return\x202 1 k`, "run 0 [EVAL_RO return 2 1 k] on [k] readonly")
	other := fmt.Sprintf("%x", sha1.Sum([]byte("return 2")))
	ask("EVALSHA_RO "+other+" 1 k", "run 0 [EVALSHA_RO "+other+" 1 k] on [k] script return 2 readonly")
}

// TestRejectedEvalAsksNobody: a rejected EVAL asks no master and registers no text.
func TestRejectedEvalAsksNobody(t *testing.T) {
	p := newFakeLockerPlane(nil)
	if reply := p.ask(t, "EVAL text 2 k"); reply != string(errorTooManyKeys) {
		t.Errorf("reply %q", reply)
	}
	if reply := p.ask(t, "EVALSHA text 1 k"); reply != string(errorNoScript) {
		t.Errorf("reply %q", reply)
	}
	if _, known := p.Scripts.Get(fmt.Appendf(nil, "%x", sha1.Sum([]byte("text")))); known || len(p.locker.asked) > 0 {
		t.Errorf("asked %q, the text is known: %t", p.locker.requests(), known)
	}
}

// TestNoScriptInRedissWords: some clients compare the whole line, so the plane replaces
// the masters' text by Redis's. It leaves other errors alone.
func TestNoScriptInRedissWords(t *testing.T) {
	const valkey = "NOSCRIPT No matching script."
	sha := fmt.Sprintf("%x", sha1.Sum([]byte("s")))
	for _, row := range []struct {
		Command string
		outcome redlock.Outcome
		reply   string
	}{
		{"EVALSHA " + sha + " 1 k", fakeLockerReply("-" + valkey + "\r\n"), string(errorNoScript)},
		{"EVALSHA_RO " + sha + " 1 k", redlock.Outcome{Verdict: redlock.Lost, Err: valkey}, string(errorNoScript)},
		{"EVALSHA " + sha + " 1 k", fakeLockerReply("-ERR NOSCRIPT\r\n"), "-ERR NOSCRIPT\r\n"},
		{"EVALSHA " + sha + " 1 k", fakeLockerNoQuorum, "-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n"},
		{"EVAL s 1 k", fakeLockerReply("-NOSCRIPT my own\r\n"), "-NOSCRIPT my own\r\n"},
	} {
		p := newFakeLockerPlane(fakeLockerAnswers(row.outcome))
		p.Scripts.Register([]byte("s"))
		if reply := p.ask(t, row.Command); reply != row.reply {
			t.Errorf("%s answered %+v: %q, want %q", row.Command, row.outcome, reply, row.reply)
		}
	}
}

func FuzzCheckEval(f *testing.F) {
	f.Add(strings.Repeat("a", 40), "1", 2)
	f.Add("s", "-1", 0)
	f.Add("s", "9223372036854775808", 3)
	f.Fuzz(func(t *testing.T, script, numkeys string, more int) {
		args := [][]byte{[]byte("EVAL"), []byte(script), []byte(numkeys)}
		for i := range more & 15 {
			args = append(args, strconv.AppendInt(nil, int64(i), 10))
		}
		reply := checkEval(args, false)
		n, err := strconv.Atoi(numkeys)
		if accepted := reply == ""; accepted != (err == nil && strconv.Itoa(n) == numkeys && n >= 0 && n <= more&15) {
			t.Errorf("%q keys of %d: %q", numkeys, more&15, reply)
		}
		if bySHA := checkEval(args, true); bySHA != reply && (len(script) == 40 || bySHA != errorNoScript) {
			t.Errorf("by SHA1 of %d bytes: %q, else %q", len(script), bySHA, reply)
		}
	})
}
