package lock

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// A transaction reports keys that it deletes without comparing, whether or not its client
// watches keys.
func TestTransactionsTellWhatTheyDelete(t *testing.T) {
	for _, row := range []struct {
		commands []string
		watches  bool
		deletes  string
	}{
		{[]string{"SET k v", "GET k"}, false, ""},
		{[]string{"DEL k j", "INCR i", "UNLINK k"}, false, "[k j]"},
		{[]string{"GETDEL k"}, false, "[k]"},
		{[]string{"DELEX k"}, false, "[k]"},
		{[]string{"DELEX k IFEQ v"}, false, ""},
		{[]string{"DEL k"}, true, "[k]"},
		{[]string{"EXPIRE k 0"}, false, "[k]"},
		{[]string{"PEXPIRE k -1 XX"}, false, "[k]"},
		{[]string{"EXPIREAT k 1", "PEXPIREAT j 1"}, false, "[k j]"},
		{[]string{"EXPIRE k 10", "PEXPIRE k 0 NX XX", "EXPIRE k x"}, false, ""},
		{[]string{"GETEX k EXAT 1"}, false, "[k]"},
		{[]string{"GETEX k PX 1", "GETEX j PX 3", "GETEX i"}, false, "[k]"},
		{[]string{"SET k v PXAT 1"}, false, "[k]"},
		{[]string{"SET k v PX 1", "PSETEX j 2 v"}, false, "[k j]"},
		{[]string{"RENAME k j", "RENAMENX i h"}, false, "[k i]"},
		{[]string{"SET k v PXAT 1 NX", "SET k v PX 3", "SET k v IFEQ w PXAT 1"}, false, ""},
	} {
		p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, "x")))
		var transaction Transaction
		for _, line := range row.commands {
			transaction.Commands = append(transaction.Commands, fakeLockerCall(line))
		}
		if row.watches {
			transaction.Watches = []*redlock.Watch{{}}
		}
		p.Exec(t.Context(), nil, transaction)
		requests := p.locker.requests()
		if len(requests) != 1 {
			t.Fatalf("%q: asked %q", row.commands, requests)
		}
		if _, deletes, _ := strings.Cut(requests[0], " deletes "); deletes != row.deletes {
			t.Errorf("%q, watches: %v: it deletes %q", row.commands, row.watches, deletes)
		}
	}
}

// A transaction of no commands does nothing but what its watches do.
func TestATransactionOfNoCommands(t *testing.T) {
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerReply("*0\r\n")))
	if reply := string(p.Exec(t.Context(), nil, Transaction{Watches: []*redlock.Watch{{}}})); reply != "*0\r\n" || len(p.locker.asked) != 1 {
		t.Errorf("%q, asked %q", reply, p.locker.requests())
	}
}

func TestWatchTellsOfALostQuorum(t *testing.T) {
	p := newFakeLockerPlane(nil)
	if w, reply := p.Watch(t.Context(), 0, [][]byte{[]byte("k")}); w == nil || reply != "" {
		t.Errorf("%v %q", w, reply)
	}
	p.locker.blind = true
	if w, reply := p.Watch(t.Context(), 0, [][]byte{[]byte("k")}); w != nil || !strings.HasPrefix(string(reply), "-QUORUMLOST ") {
		t.Errorf("without a quorum: %v %q", w, reply)
	}
}

// The masters get the texts of the scripts that are known, and answer in the client's protocol.
func TestTransactionsKnowScripts(t *testing.T) {
	sha := func(text string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(text))) }
	for _, row := range []struct {
		commands []string
		version  wire.Version
		scripts  string
	}{
		{[]string{"EVALSHA " + sha("new") + " 1 k"}, wire.RESP2, "[]"},
		{[]string{"EVAL new 1 k", "EVALSHA " + sha("new") + " 1 k"}, wire.RESP3, `["new"]`},
		{[]string{"EVAL_RO new 1 k", "EVALSHA_RO " + sha("new") + " 1 k"}, wire.RESP2, `["new"]`},
	} {
		p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerReply("*0\r\n")))
		transaction := Transaction{Version: row.version}
		for _, line := range row.commands {
			transaction.Commands = append(transaction.Commands, fakeLockerCall(line))
		}
		p.Exec(t.Context(), nil, transaction)
		r := p.locker.asked[0].(redlock.RunRequest)
		if got := fmt.Sprintf("%q", r.Scripts); got != row.scripts || r.RESP3 != (row.version == wire.RESP3) {
			t.Errorf("%q: scripts %s, RESP3 %v", row.commands, got, r.RESP3)
		}
	}
}

// So does a command outside of MULTI.
func TestCommandsTellWhatTheyDelete(t *testing.T) {
	for line, deletes := range map[string]string{
		"EXPIRE k 0 XX":         "[k]",
		"PEXPIREAT k 1 LT":      "[k]",
		"EXPIRE k -1 NX":        "[k]",
		"RENAME k j":            "[k]",
		"RENAMENX k j":          "[k]",
		"SDIFFSTORE k j i":      "[k]",
		"ZINTERSTORE k 2 j i":   "[k]",
		"ZINTERSTORE k 2 k i":   "", // a semaphore removes those whose time is over
		"BITOP AND k j i":       "[k]",
		"SORT j STORE k":        "[k]",
		"SORT k STORE k":        "",
		"RESTORE k 0 x":         "",
		"PEXPIRE k 2 XX":        "[k]",
		"PEXPIRE k 3 XX LT":     "",
		"EXPIRE k 10 XX LT":     "",
		"SET k v":               "",
		"SET k v IFEQ w PXAT 1": "",
		"LPOP k":                "",
		"SORT k":                "",
		"GEORADIUS k 1 2 3 m":   "",

		"GEORADIUS j 1 2 3 m STORE k":       "[k]",
		"GEORADIUSBYMEMBER j x 3 m STORE k": "[k]",
	} {
		p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, "x")))
		p.Do(t.Context(), nil, fakeLockerCall(line))
		requests := p.locker.requests()
		if len(requests) != 1 {
			t.Fatalf("%q: asked %q", line, requests)
		}
		if _, got, _ := strings.Cut(requests[0], " deletes "); got != deletes {
			t.Errorf("%q deletes %q, want %q", line, got, deletes)
		}
	}
}

// The masters' clocks need not agree with each other. So each master gets a time from now, also in MULTI.
func TestTransactionsHaveNoAbsoluteTimes(t *testing.T) {
	const now = 946684800 // of a bubble's clock, in seconds
	for line, want := range map[string]string{
		fmt.Sprintf("EXPIREAT k %d", now+5):           "[PEXPIRE k 5000]",
		fmt.Sprintf("PEXPIREAT k %d007 NX", now):      "[PEXPIRE k 7 NX]",
		fmt.Sprintf("SET k v EXAT %d", now+5):         "[SET k v PX 5000]",
		fmt.Sprintf("SET k v NX PXAT %d007", now):     "[SET k v NX PX 7]",
		fmt.Sprintf("SET k v IFEQ w PXAT %d007", now): "[SET k v IFEQ w PX 7]",
		fmt.Sprintf("GETEX k EXAT %d", now+5):         "[GETEX k PX 5000]",
		// These times have passed.
		fmt.Sprintf("EXPIREAT k %d", now-5):    "[EXPIREAT k 1]",
		fmt.Sprintf("SET k v EXAT %d", now-5):  "[SET k v EXAT 1]",
		fmt.Sprintf("GETEX k PXAT %d000", now): "[GETEX k PXAT 1]",
		// The masters judge these.
		"EXPIREAT k never":  "[EXPIREAT k never]",
		"SET k v EXAT 0":    "[SET k v EXAT 0]",
		"GETEX k EXAT now":  "[GETEX k EXAT now]",
		"SET k v PX 5 XXXX": "[SET k v PX 5 XXXX]",
		"EXPIRE k 5":        "[EXPIRE k 5]",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, "x")))
			p.Exec(t.Context(), nil, Transaction{Commands: []Command{fakeLockerCall(line)}})
			if got := fmt.Sprintf("%s", p.locker.asked[0].(redlock.RunRequest).Transaction[0]); got != want {
				t.Errorf("%q goes out as %s, want %s", line, got, want)
			}
		})
	}
}
