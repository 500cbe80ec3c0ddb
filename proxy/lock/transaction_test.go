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
