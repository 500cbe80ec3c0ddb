package route

import (
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
)

// The router holds a moved key back until old locks have ended, wherever the key is
// in a command. It holds no other key back.
func TestMovedKeysAreHeldBack(t *testing.T) {
	now := time.Now()
	old := &Router{Table: Builtin(), Rules: Rules{{Match: "lock:*", DB: AnyDB}, {Match: "old:*", DB: 2}}}
	next := old.WithRules(Rules{{Match: "lock:*", DB: AnyDB}, {Match: "new:*", DB: AnyDB}}, now, 10*time.Minute, time.Minute)
	if next.Generation != old.Generation+1 {
		t.Errorf("the generation went from %d to %d", old.Generation, next.Generation)
	}
	for _, row := range []struct {
		db       int
		line     string
		heldBack time.Duration
	}{
		{0, "SET lock:a 1 NX", 0},
		{0, "SET plain 1", 0},
		{0, "PING", 0},
		{0, "NOSUCH new:a", 0}, // the keys of an unknown command are unknown
		{0, "SET new:a 1 NX PX 1000", 10 * time.Minute},
		{3, "GET new:a", 10 * time.Minute},
		{0, "GET old:a", 0}, // it was a lock in database 2 only
		{2, "GET old:a", time.Minute},
		{2, "DEL plain old:a new:a", 10 * time.Minute},
		{2, "EVAL script 1 old:a value", time.Minute},
		{2, "EVAL script 0 old:a", time.Minute}, // some libraries name the key there
		{2, "EVAL old:script 0", 0},
		{2, "EVALSHA sha 1 lock:a value", 0},
		{0, "SET redisson_lock_queue:{new:a} 1", 10 * time.Minute}, // a companion moves with its lock
	} {
		args := proxytest.Words(row.line)
		until := next.HeldBack(row.db, args, next.Route(row.db, args), now)
		if want := now.Add(row.heldBack); row.heldBack == 0 && !until.IsZero() || row.heldBack > 0 && !until.Equal(want) {
			t.Errorf("%s in database %d: until %v", row.line, row.db, until.Sub(now))
		}
		if until := next.HeldBack(row.db, args, next.Route(row.db, args), now.Add(10*time.Minute)); !until.IsZero() {
			t.Errorf("%s is still held back after ten minutes", row.line)
		}
	}
}

// If a place held a key back all the time, no client got a lock on it there, so the
// key can go back at once. Otherwise a client may hold a lock in either place.
func TestMovesAddUp(t *testing.T) {
	start := time.Now()
	first, second := Rules{{Match: "lock:*", DB: AnyDB}}, Rules{{Match: "job:*", DB: AnyDB}}
	const coming, leaving = 10 * time.Minute, time.Minute
	type step struct {
		after time.Duration // since the step before
		rules Rules
	}
	for _, row := range []struct {
		name      string
		steps     []step
		lock, job time.Duration // how long they are held back after the last step
	}{
		{"away", []step{{0, second}}, leaving, coming},
		{"away and back", []step{{0, second}, {time.Second, first}}, 0, 0},
		{"away and back when a lock could be taken where it went", []step{{0, second}, {2 * time.Minute, first}}, coming, 0},
		{"away and back when all could", []step{{0, second}, {coming, first}}, coming, leaving},
		{"away, back, and away", []step{{0, second}, {time.Second, first}, {time.Second, second}}, leaving, coming},
		{"away, back, away, and back", []step{{0, second}, {time.Second, first}, {time.Second, second}, {time.Second, first}}, 0, 0},
		{"away, others away, and back", []step{{0, second}, {time.Second, Rules{{Match: "x*", DB: AnyDB}}}, {time.Second, first}}, 0, 0},
		{"away, and others with it later", []step{{0, second}, {time.Second, Rules{{Match: "x*", DB: AnyDB}}}}, leaving - time.Second, 0},
	} {
		now := start
		r := &Router{Table: Builtin(), Rules: first}
		for _, step := range row.steps {
			now = now.Add(step.after)
			r = r.WithRules(step.rules, now, coming, leaving)
		}
		for key, want := range map[string]time.Duration{"lock:a": row.lock, "job:a": row.job, "plain": 0} {
			args := proxytest.Words("GET " + key)
			until := r.HeldBack(0, args, r.Route(0, args), now)
			if want == 0 && !until.IsZero() || want > 0 && until.Sub(now) != want {
				t.Errorf("%s: %s until %v", row.name, key, until.Sub(now))
			}
		}
		if r = r.WithRules(r.Rules, now.Add(time.Hour), time.Minute, time.Minute); len(r.Moves) != 0 {
			t.Errorf("%s: still %d moves an hour later", row.name, len(r.Moves))
		}
	}
}

// A rule whose keys are all keys of another rule moves no key.
func TestRulesWithinOthersMoveNothing(t *testing.T) {
	rule := func(match string, companions ...string) Rule {
		return Rule{Match: match, DB: AnyDB, Companions: companions}
	}
	for _, row := range []struct {
		with, without Rules
		same          bool
	}{
		{Rules{rule("lock:cron:*"), rule("lock:*")}, Rules{rule("lock:*")}, true},
		{Rules{rule("lock:*"), rule("lock:*")}, Rules{rule("lock:*")}, true},
		{Rules{rule("lock:*"), {Match: "lock:[ab]", DB: 3}}, Rules{rule("lock:*")}, true},
		{Rules{rule("*"), rule("*_LOCK")}, Rules{rule("*")}, true},
		{Rules{{Match: "lock:*", DB: 3}, rule("lock:a*")}, Rules{{Match: "lock:*", DB: 3}}, false},
		{Rules{rule("lock:*"), rule("lock:a*", "w:*")}, Rules{rule("lock:*")}, false},
		{Rules{rule("lock?*"), rule("lock:*")}, Rules{rule("lock?*")}, false}, // lock?* is no plain prefix
		{Rules{rule("lock:*"), rule("loc*")}, Rules{rule("lock:*")}, false},
	} {
		if same := SameCoverage(row.with, row.without); same != row.same {
			t.Errorf("%v and %v: %v", row.with, row.without, same)
		}
	}
}

// Rules that make the same keys lock keys move no key.
func TestSameCoverageMovesNothing(t *testing.T) {
	old := &Router{Rules: Rules{{Match: "a*", DB: AnyDB}, {Match: "b*", DB: 1}}}
	next := old.WithRules(Rules{{Match: "b*", DB: 1, DefaultTTL: time.Second}, {Match: "a*", DB: AnyDB}}, time.Now(), time.Minute, time.Minute)
	if len(next.Moves) != 0 || next.Generation != old.Generation || next.Rules[0].DefaultTTL != time.Second {
		t.Errorf("got %+v", next)
	}
}
