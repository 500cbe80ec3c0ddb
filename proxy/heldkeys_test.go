package proxy

import (
	"testing"
	"time"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/proxytest"
)

// A key that has moved with the rules is held back until locks from before
// have ended, wherever it stands in a command, and no other key is.
func TestMovedKeysAreHeldBack(t *testing.T) {
	now := time.Now()
	old := &router{table: command.Builtin(), rules: lockRules{{match: "lock:*", db: anyDB}, {match: "old:*", db: 2}}}
	next := old.withRules(lockRules{{match: "lock:*", db: anyDB}, {match: "new:*", db: anyDB}}, now, 10*time.Minute, time.Minute)
	if next.era != old.era+1 {
		t.Errorf("the era went from %d to %d", old.era, next.era)
	}
	for _, row := range []struct {
		db       int
		line     string
		heldBack time.Duration
	}{
		{0, "SET lock:a 1 NX", 0},
		{0, "SET plain 1", 0},
		{0, "PING", 0},
		{0, "NOSUCH new:a", 0}, // whoever knows it knows its keys
		{0, "SET new:a 1 NX PX 1000", 10 * time.Minute},
		{3, "GET new:a", 10 * time.Minute},
		{0, "GET old:a", 0}, // it was a lock in database 2 only
		{2, "GET old:a", time.Minute},
		{2, "DEL plain old:a new:a", 10 * time.Minute},
		{2, "EVAL script 1 old:a value", time.Minute},
		{2, "EVAL script 0 old:a", time.Minute}, // libraries that name the key there
		{2, "EVAL old:script 0", 0},
		{2, "EVALSHA sha 1 lock:a value", 0},
		{0, "SET redisson_lock_queue:{new:a} 1", 10 * time.Minute}, // a companion moves with its lock
	} {
		args := proxytest.Words(row.line)
		until := next.heldBack(row.db, args, next.route(row.db, args), now)
		if want := now.Add(row.heldBack); row.heldBack == 0 && !until.IsZero() || row.heldBack > 0 && !until.Equal(want) {
			t.Errorf("%s in database %d: until %v", row.line, row.db, until.Sub(now))
		}
		if until := next.heldBack(row.db, args, next.route(row.db, args), now.Add(10*time.Minute)); !until.IsZero() {
			t.Errorf("%s is held back for ever", row.line)
		}
	}
}

// What was held back all the time that it was somewhere was granted to nobody
// there, so it can go back at once. What was not may be held in either place.
func TestMovesAddUp(t *testing.T) {
	start := time.Now()
	first, second := lockRules{{match: "lock:*", db: anyDB}}, lockRules{{match: "job:*", db: anyDB}}
	const coming, leaving = 10 * time.Minute, time.Minute
	type step struct {
		after time.Duration // since the step before
		rules lockRules
	}
	for _, row := range []struct {
		name      string
		steps     []step
		lock, job time.Duration // until when they are held back, from the last step
	}{
		{"away", []step{{0, second}}, leaving, coming},
		{"away and back", []step{{0, second}, {time.Second, first}}, 0, 0},
		{"away and back when a lock could be taken where it went", []step{{0, second}, {2 * time.Minute, first}}, coming, 0},
		{"away and back when all could", []step{{0, second}, {coming, first}}, coming, leaving},
		{"away, back, and away", []step{{0, second}, {time.Second, first}, {time.Second, second}}, leaving, coming},
		{"away, back, away, and back", []step{{0, second}, {time.Second, first}, {time.Second, second}, {time.Second, first}}, 0, 0},
		{"away, others away, and back", []step{{0, second}, {time.Second, lockRules{{match: "x*", db: anyDB}}}, {time.Second, first}}, 0, 0},
		{"away, and others with it later", []step{{0, second}, {time.Second, lockRules{{match: "x*", db: anyDB}}}}, leaving - time.Second, 0},
	} {
		now := start
		r := &router{table: command.Builtin(), rules: first}
		for _, step := range row.steps {
			now = now.Add(step.after)
			r = r.withRules(step.rules, now, coming, leaving)
		}
		for key, want := range map[string]time.Duration{"lock:a": row.lock, "job:a": row.job, "plain": 0} {
			args := proxytest.Words("GET " + key)
			until := r.heldBack(0, args, r.route(0, args), now)
			if want == 0 && !until.IsZero() || want > 0 && until.Sub(now) != want {
				t.Errorf("%s: %s until %v", row.name, key, until.Sub(now))
			}
		}
		if r = r.withRules(r.rules, now.Add(time.Hour), time.Minute, time.Minute); len(r.moves) != 0 {
			t.Errorf("%s: %d moves are kept for ever", row.name, len(r.moves))
		}
	}
}

// A rule within another one covers nothing of its own.
func TestRulesWithinOthersMoveNothing(t *testing.T) {
	rule := func(match string, companions ...string) lockRule {
		return lockRule{match: match, db: anyDB, companions: companions}
	}
	for _, row := range []struct {
		with, without lockRules
		same          bool
	}{
		{lockRules{rule("lock:cron:*"), rule("lock:*")}, lockRules{rule("lock:*")}, true},
		{lockRules{rule("lock:*"), rule("lock:*")}, lockRules{rule("lock:*")}, true},
		{lockRules{rule("lock:*"), {match: "lock:[ab]", db: 3}}, lockRules{rule("lock:*")}, true},
		{lockRules{rule("*"), rule("*_LOCK")}, lockRules{rule("*")}, true},
		{lockRules{{match: "lock:*", db: 3}, rule("lock:a*")}, lockRules{{match: "lock:*", db: 3}}, false},
		{lockRules{rule("lock:*"), rule("lock:a*", "w:*")}, lockRules{rule("lock:*")}, false},
		{lockRules{rule("lock?*"), rule("lock:*")}, lockRules{rule("lock?*")}, false}, // not plain to see
		{lockRules{rule("lock:*"), rule("loc*")}, lockRules{rule("lock:*")}, false},
	} {
		if same := sameCoverage(row.with, row.without); same != row.same {
			t.Errorf("%v and %v: %v", row.with, row.without, same)
		}
	}
}

// Rules that call the same keys lock keys move none.
func TestSameCoverageMovesNothing(t *testing.T) {
	old := &router{rules: lockRules{{match: "a*", db: anyDB}, {match: "b*", db: 1}}}
	next := old.withRules(lockRules{{match: "b*", db: 1, defaultTTL: time.Second}, {match: "a*", db: anyDB}}, time.Now(), time.Minute, time.Minute)
	if len(next.moves) != 0 || next.era != old.era || next.rules[0].defaultTTL != time.Second {
		t.Errorf("got %+v", next)
	}
}
