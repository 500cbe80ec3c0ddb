package lock

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// withJournal is a plane with rules for lock:* and a journal, and a client of it.
func withJournal(answer func(any) redlock.Outcome, slow bool) (*Plane, *events.Journal, *events.Client) {
	j := events.New(slog.New(slog.DiscardHandler))
	client := events.NewClient(7, "10.0.0.7:1", time.Now())
	client.Introduce(events.Identity{Name: "worker"})
	routes := &route.Router{Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}}
	plane := New(Config{
		Locker: &fakeLocker{answer: answer}, Router: func() *route.Router { return routes },
		MaxQuarantine: func() time.Duration { return time.Hour }, MaxReply: func() int64 { return 4 << 20 }, Scripts: NewScripts(1<<20, nil),
		Meter: new(fakeLockerMeter), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Journal: j, IsSlow: func(time.Duration) bool { return slow },
	})
	return plane, j, client
}

// The journal hears what each command meant for its key, and who took the lock.
func TestJournalOfCommands(t *testing.T) {
	won, lost, noQuorum := redlock.Outcome{Verdict: redlock.Won}, redlock.Outcome{Verdict: redlock.Lost}, redlock.Outcome{Verdict: redlock.NoQuorum}
	did := func(all ...redlock.Effect) redlock.Outcome {
		return redlock.Outcome{Verdict: redlock.Won, Reply: []byte(":1\r\n"), Effects: all}
	}
	effect := func(key string, change redlock.Change, value string) redlock.Effect {
		return redlock.Effect{Key: []byte(key), Change: change, Value: []byte(value), TTL: time.Minute}
	}
	refused := did()
	refused.Refused = true
	const script = "EVAL return(1) 1 lock:a token"
	for _, row := range []struct {
		line    string
		outcome redlock.Outcome
		want    string // the verdicts, the newest first
		holder  string // of lock:a with the value "token"
	}{
		{"SET lock:a token NX PX 9000", won, "granted", "worker"},
		{"SET lock:a token NX PX 9000", lost, "refused", ""},
		{"SET lock:a token NX PX 9000", noQuorum, "undecided", ""},
		{"SET lock:a token NX PX 9000", redlock.Outcome{Verdict: redlock.Lost, Err: "OOM x"}, "error", ""},
		{"SET lock:a other NX PX 9000", won, "granted", ""},
		{"SETNX lock:a token", won, "granted", "worker"},
		{"GETSET lock:a token", won, "granted", "worker"},
		{"PEXPIRE lock:a 9000", won, "extended", ""},
		{"PEXPIRE lock:a 9000", lost, "absent", ""},
		{"DEL lock:a", won, "released", ""},
		{"DEL lock:a", lost, "absent", ""},
		{"DEL lock:a lock:b", won, "released", ""},
		{"GET lock:a", won, "", ""},
		{"GET lock:a", noQuorum, "", ""},
		{"SET lock:a", won, "", ""},
		{"NOSUCH lock:a", won, "", ""},
		{script, did(effect("lock:a", redlock.KeyCreated, "token")), "granted", "worker"},
		{script, did(effect("lock:a", redlock.KeyCreated, "other")), "granted", ""},
		{script, did(effect("lock:a", redlock.KeyProlonged, "")), "extended", ""},
		{script, did(effect("lock:a", redlock.KeyReplaced, "")), "changed", ""},
		{script, did(effect("lock:a", redlock.KeyDeleted, "")), "released", ""},
		{script, did(effect("lock:b", redlock.KeyDeleted, ""), effect("lock:a", redlock.KeyCreated, "token")), "changed", ""},
		{script, refused, "refused", ""},
		{script, did(), "", ""},
		{script, noQuorum, "undecided", ""},
		{"EVAL return(1) 2 lock:a lock:b token", refused, "refused", ""},
		{script, did(effect("other", redlock.KeyCreated, "token")), "", ""},
	} {
		plane, j, client := withJournal(func(any) redlock.Outcome { return row.outcome }, false)
		call := plane.call(row.line)
		call.From = client
		plane.Do(t.Context(), nil, call)
		var verdicts []string
		for _, m := range j.Verdicts(0, []byte("lock:a")) {
			verdicts = append(verdicts, m.Verdict.String())
			if m.Client.Name != "worker" {
				t.Errorf("%s: by %+v", row.line, m.Client)
			}
		}
		if got := strings.Join(verdicts, " "); got != row.want {
			t.Errorf("%s: %q, not %q", row.line, got, row.want)
		}
		if others := j.Verdicts(0, []byte("other")); len(others) > 0 {
			t.Errorf("%s: %+v of a key that is no lock", row.line, others)
		}
		if h, _ := j.Holder(0, []byte("lock:a"), []byte("token"), time.Now()); h.Client.Name != row.holder {
			t.Errorf("%s: the holder is %q, not %q", row.line, h.Client.Name, row.holder)
		}
		if c := client.Info(); c.Command != "" {
			t.Errorf("%s: still runs %q", row.line, c.Command)
		}
	}
}

// The journal counts what took a lock, did not, and could not be decided. An error and a command whose
// client has gone are none of these.
func TestJournalCountsCommands(t *testing.T) {
	for outcome, want := range map[*redlock.Outcome]events.Decided{
		{Verdict: redlock.Won}:                       {Granted: 1},
		{Verdict: redlock.Lost}:                      {Refused: 1},
		{Verdict: redlock.NoQuorum}:                  {Undecided: 1},
		{Verdict: redlock.NoQuorum, Abandoned: true}: {},
		{Verdict: redlock.Lost, Err: "OOM x"}:        {},
	} {
		plane, j, _ := withJournal(func(any) redlock.Outcome { return *outcome }, false)
		plane.Do(t.Context(), nil, plane.call("SET lock:a token NX PX 9000"))
		plane.Do(t.Context(), nil, plane.call("SET lock:a"))
		if total, _ := j.Commands(time.Now()); total != want {
			t.Errorf("%+v: %+v, not %+v", *outcome, total, want)
		}
	}
}

// A deletion that releases some of its keys does not say which.
func TestJournalOfADeletionOfSomeKeys(t *testing.T) {
	plane, j, client := withJournal(func(request any) redlock.Outcome {
		if string(request.(redlock.ReleaseRequest).Key) == "lock:b" {
			return redlock.Outcome{Verdict: redlock.Lost}
		}
		return redlock.Outcome{Verdict: redlock.Won}
	}, false)
	call := plane.call("DEL lock:a lock:b")
	call.From = client
	plane.Do(t.Context(), nil, call)
	for _, key := range []string{"lock:a", "lock:b"} {
		if verdicts := j.Verdicts(0, []byte(key)); len(verdicts) > 0 {
			t.Errorf("%s: %+v", key, verdicts)
		}
	}
}

// A fencing token is no release: WHY still knows who took the lock.
func TestJournalOfATokensLock(t *testing.T) {
	plane, j, client := withJournal(func(any) redlock.Outcome { return redlock.Outcome{Verdict: redlock.Won, Number: 7} }, false)
	for _, line := range []string{"SET lock:a token NX PX 9000", "REDLOCK TOKEN lock:a token"} {
		call := plane.call(line)
		call.From = client
		plane.Do(t.Context(), nil, call)
	}
	if h, known := j.Holder(0, []byte("lock:a"), []byte("token"), time.Now()); !known || h.Client.Name != "worker" {
		t.Errorf("the holder is %+v", h)
	}
	if verdicts := j.Verdicts(0, []byte("lock:a")); len(verdicts) != 1 || verdicts[0].Verdict != events.Granted {
		t.Errorf("the verdicts are %+v", verdicts)
	}
}

// While a command runs, the journal knows which, and for which key.
func TestJournalOfARunningCommand(t *testing.T) {
	var client *events.Client
	seen := ""
	plane, _, client := withJournal(func(any) redlock.Outcome {
		c := client.Info()
		seen = c.Command + " " + c.Key
		return redlock.Outcome{Verdict: redlock.Won, Reply: []byte("+OK\r\n")}
	}, false)
	for line, want := range map[string]string{
		"SET lock:a token NX":                 "set lock:a",
		"EVAL return(1) 0 lock:secret secret": "eval ", // it may be a value
	} {
		call := plane.call(line)
		call.From = client
		plane.Do(t.Context(), nil, call)
		if seen != want {
			t.Errorf("%s: %q, not %q", line, seen, want)
		}
	}
	calls := []Command{plane.call("SET lock:a token"), plane.call("SET lock:b token")}
	calls[0].From = client
	if plane.Exec(t.Context(), nil, Transaction{Commands: calls}); seen != "exec lock:a" {
		t.Errorf("EXEC: %q", seen)
	}
}

// The slow log never shows a value.
func TestJournalOfSlowCommands(t *testing.T) {
	plane, j, client := withJournal(func(any) redlock.Outcome {
		return redlock.Outcome{Verdict: redlock.Won, Reply: []byte("+OK\r\n")}
	}, true)
	for _, line := range []string{"SET lock:a secret NX", "GET lock:a", "EVAL return(1) 1 lock:a secret", "EVAL return(1) 0 secret", "BLPOP lock:a 0"} {
		call := plane.call(line)
		call.From, call.DB = client, 5
		plane.Do(t.Context(), nil, call)
	}
	plane.Exec(t.Context(), nil, Transaction{Commands: []Command{plane.call("SET lock:a secret"), plane.call("GET lock:a")}})
	var got []string
	for _, slow := range j.Slow(100) {
		got = append(got, fmt.Sprintf("%q %s", slow.Shown(), slow.Client.Name))
		if slow.DB != 5 && slow.Command != "exec" {
			t.Errorf("%+v", slow)
		}
	}
	want := []string{
		`["exec" "lock:a" "... (2 more arguments)"] `,
		`["eval" "... (3 more arguments)"] worker`,
		`["eval" "lock:a" "... (3 more arguments)"] worker`,
		`["get" "lock:a"] worker`,
		`["set" "lock:a" "... (2 more arguments)"] worker`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A refused script that names no keys may have a value in the place of a key. The most
// refused keys never show it, even if a rule matches everything.
func TestJournalOfAScriptWithoutKeys(t *testing.T) {
	plane, j, client := withJournal(func(any) redlock.Outcome {
		return redlock.Outcome{Verdict: redlock.Won, Reply: []byte("$-1\r\n"), Refused: true}
	}, false)
	plane.Router().Rules[0].Match = "*"
	for _, line := range []string{"EVAL return(1) 0 secret", "EVAL return(1) 1 lock:a secret"} {
		call := plane.call(line)
		call.Route.Keys, call.Route.Lock = []int{3}, []bool{true} // as with a rule that matches it
		call.From = client
		plane.Do(t.Context(), nil, call)
	}
	if hot := j.Hottest(10, time.Now(), func(int, []byte) bool { return true }); len(hot) != 1 || hot[0].Key != "lock:a" {
		t.Errorf("%+v", hot)
	}
}
