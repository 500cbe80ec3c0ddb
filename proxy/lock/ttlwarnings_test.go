package lock

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// The plane counts locks that live longer than any quarantine, and warns about them
// once for each rule. It ignores locks that are not won.
func TestLocksBeyondQuarantine(t *testing.T) {
	verdict := redlock.Lost
	p := newFakeLockerPlane(func(any) redlock.Outcome { return redlock.Outcome{Verdict: verdict} },
		route.Rule{Match: "a:*", DB: route.AnyDB}, route.Rule{Match: "b:*", DB: route.AnyDB, DefaultTTL: time.Hour})
	p.ask(t, "SET a:1 secret NX PX 600001")
	verdict = redlock.Won
	for _, command := range []string{
		"SET a:1 secret NX PX 600000", // max_quarantine itself is covered
		"SET a:1 secret NX PX 600001", "SET a:2 secret NX EX 601", "EXPIRE a:1 601", "SET a:1 secret GET PX 600001",
		"SETNX b:1 secret",
	} {
		p.ask(t, command)
	}
	if want := slices.Repeat([]string{"beyond quarantine"}, 5); !slices.Equal(p.meter.notes, want) {
		t.Errorf("counted %q", p.meter.notes)
	}
	if got := strings.Count(p.log.String(), "level=WARN"); got != 2 || strings.Contains(p.log.String(), "secret") {
		t.Errorf("%d warnings:\n%s", got, p.log)
	}
}

// The plane counts a lock that a script has taken by the life that the run reports.
func TestLocksBeyondQuarantineByScript(t *testing.T) {
	o := redlock.Outcome{Verdict: redlock.Won, Reply: []byte(":1\r\n"), Lives: 10 * time.Minute}
	p := newFakeLockerPlane(func(any) redlock.Outcome { return o }, route.Rule{Match: "a:*", DB: route.AnyDB})
	p.ask(t, "EVAL script 1 a:1")
	o.Lives++
	p.ask(t, "EVAL script 1 a:1")
	p.ask(t, "SETEX a:1 601 value")
	o.Verdict = redlock.Lost
	p.ask(t, "EVAL script 1 a:1")
	if want := slices.Repeat([]string{"beyond quarantine"}, 2); !slices.Equal(p.meter.notes, want) {
		t.Errorf("counted %q", p.meter.notes)
	}
}
