package lock

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// Holds and waits are measured by rule, whether the lock is taken and released by name or
// by a script. An undecided command is not measured.
func TestHoldsAndWaitsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next redlock.Outcome
		p := newFakeLockerPlane(func(any) redlock.Outcome { return next }, route.Rule{Match: "*", DB: route.AnyDB})
		p.Journal, p.IsSlow = events.New(p.Log), func(time.Duration) bool { return false }
		me, other := events.NewClient(1, "me", time.Now()), events.NewClient(2, "other", time.Now())
		send := func(client *events.Client, line string, o redlock.Outcome) {
			call := p.call(line)
			call.From, next = client, o
			p.Do(t.Context(), nil, call)
			time.Sleep(time.Second)
		}
		script := func(does redlock.Effect) redlock.Outcome {
			o := fakeLockerReply(":1\r\n")
			does.Key = []byte("b")
			o.Effects = []redlock.Effect{does}
			return o
		}
		created, deleted := redlock.Effect{Change: redlock.KeyCreated}, redlock.Effect{Change: redlock.KeyDeleted}
		refused := fakeLockerReply(":0\r\n")
		refused.Refused = true
		send(me, "SET a 1 NX PX 30000", fakeLockerWon)
		send(other, "SET a 2 NX PX 30000", fakeLockerLost)
		send(other, "SET a 2 NX PX 30000", redlock.Outcome{Verdict: redlock.NoQuorum})
		send(me, "DEL a", fakeLockerWon)
		send(other, "SET a 2 NX PX 30000", fakeLockerWon)
		send(me, "EVAL take 1 b x", script(created))
		send(other, "EVAL take 1 b y", refused)
		send(me, "EVAL again 1 b x", script(redlock.Effect{Change: redlock.KeyProlonged}))
		send(me, "EVAL release 1 b x", script(deleted))
		send(other, "EVAL take 1 b y", script(created))
		want := []string{"* waited 0s", "* held 3s", "* waited 3s", "* waited 0s", "* held 3s", "* waited 3s"}
		if !slices.Equal(p.meter.times, want) {
			t.Errorf("measured %q, want %q", p.meter.times, want)
		}
	})
}
