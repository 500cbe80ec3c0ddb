package lock

import (
	"strings"
	"testing"

	"redlock-proxy/redlock"
)

// What a transaction deletes without comparing is told, whether or not its client watches keys.
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
		{[]string{"GETEX k PX 1", "GETEX k"}, false, ""},
		{[]string{"SET k v PXAT 1"}, false, "[k]"},
		{[]string{"RENAME k j", "RENAMENX i h"}, false, "[k i]"},
		{[]string{"SET k v PXAT 1 NX", "SET k v PX 1", "SET k v IFEQ w PXAT 1"}, false, ""},
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

// So does a command outside of MULTI.
func TestCommandsTellWhatTheyDelete(t *testing.T) {
	for line, deletes := range map[string]string{
		"EXPIRE k 0 XX":         "[k]",
		"PEXPIREAT k 1 LT":      "[k]",
		"EXPIRE k -1 NX":        "[k]",
		"RENAME k j":            "[k]",
		"RENAMENX k j":          "[k]",
		"EXPIRE k 10 XX LT":     "",
		"SET k v":               "",
		"SET k v IFEQ w PXAT 1": "",
		"LPOP k":                "",
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
