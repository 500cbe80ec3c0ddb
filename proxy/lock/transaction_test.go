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
