package route

import "testing"

// mayBegin must return true for every first byte that a rule may match.
func TestRulesMayBegin(t *testing.T) {
	for _, row := range []struct {
		match, yes, no string
	}{
		{"lock:*", "l", "ax*"},
		{"*_LOCK", "la*", ""},
		{"?x", "la?", ""},
		{"[a-c]x", "la[", ""},
		{`\lock`, `la\`, ""},
		{"", "", "la"},
	} {
		rules := Rules{{Match: row.match, DB: 3}}
		for _, c := range []byte(row.yes) {
			if !rules.mayBegin(c) {
				t.Errorf("%q may match a key that begins with %q", row.match, c)
			}
		}
		for _, c := range []byte(row.no) {
			if rules.mayBegin(c) {
				t.Errorf("%q matches no key that begins with %q", row.match, c)
			}
		}
	}
}

func TestCompanions(t *testing.T) {
	rules := Rules{{Match: "lock:*", DB: AnyDB}, {Match: "*_LOCK", DB: AnyDB}, {Match: "only-three", DB: 3, Companions: []string{"jobs:*"}}, {Match: "other", DB: AnyDB, Companions: []string{"x", "queue:*"}}}
	for _, row := range []struct {
		db      int
		key     string
		covered bool
	}{
		{0, "lock:a", true},
		{0, "a", false},
		{0, "", false},

		{0, "lock-signal:a", true},
		{0, "lock-signal:", true},
		{0, "lock-signal", false},
		{0, "xlock-signal:a", false},

		{0, "redisson_lock_queue:{lock:a}", true},
		{0, "redisson_lock_timeout:{a_LOCK}", true},
		{0, "redisson_lock_timeout:{a}", false},
		{0, "redisson_lock_token:{lock:a}", true},
		{0, "redisson_lock__channel:{lock:a}", true},
		{0, "redisson_lock__channel:{lock:a}:8743c9c0:58", true},
		{0, "redisson_unlock_latch:{a_LOCK}:0e6d", true},
		{0, "redisson_rwlock:{lock:a}", true},
		{0, "redisson_sc:{lock:a}", true},
		{0, "redisson_countdownlatch__channel__{lock:a}", true},
		{0, "redisson_lock_queue:lock:{a}", true},
		{0, "redisson_unlock_latch:{tag}_LOCK:0e6d", true},
		{0, "redisson_lock_queue:{lock:a", false},
		{0, "redisson_lock_queue:", false},
		{0, "redisson_other:{lock:a}", false},
		{0, "redisson_lock_queue:{only-three}", false},
		{3, "redisson_lock_queue:{only-three}", true},

		{0, "{lock:a}:8743c9c0:58:rwlock_timeout", true},
		{0, "{lock:a}:8743c9c0:58:rwlock_timeout:1", true},
		{0, "{lock:a}:timeout", true},
		{0, "{lock:a}", true},
		{0, "{lock:a}:other", false},
		{0, "{a}:8743c9c0:58:rwlock_timeout:1", false},
		{0, "{lock:a", false},

		{0, "a_LOCK.readers", true},
		{0, "a_LOCK.writer", true},
		{0, "a_LOCK:queue", true},
		{0, "a_LOCK:readers", true},
		{0, "a_LOCK:write", true},
		{0, "a_LOCK:readers:4f", true},
		{0, "a:readers:4f", false},

		{0, "queue:7", true},
		{1, "queue:7", true},
		{0, "jobs:7", false},
		{3, "jobs:7", true},
		{0, "a.readers", false},
		{0, ".readers", false},

		{0, "symfony_check_support_time", true},
		{0, "symfony_check_support_time2", false},
	} {
		if got := rules.Covers(row.db, []byte(row.key)); got != row.covered {
			t.Errorf("database %d, %q: %t", row.db, row.key, got)
		}
	}
	if (Rules{}).Covers(0, []byte(SupportProbe)) || (Rules{{Match: "*", DB: 1}}).Covers(0, []byte(SupportProbe)) {
		t.Error("the probe is a lock key although there are no locks")
	}
}

func TestCompanionChannels(t *testing.T) {
	rules := Rules{{Match: "registry:*", DB: AnyDB}, {Match: "lock:*", DB: 2, Companions: []string{"wake-*"}}, {Match: "*_latch", DB: AnyDB}}
	for channel, covered := range map[string]bool{
		"registry-channel":                true,
		"registry-channel:registry:a":     true,
		"registry-channel:*":              true,
		"other-channel:registry:a":        true,
		"other-channel":                   false,
		"other-channel:a":                 false,
		"registry-channels":               false,
		"lock:a":                          true,
		"wake-me":                         true,
		"a_latch:channel":                 true,
		"a:channel":                       false,
		"redisson_lock__channel:{lock:a}": true,
		"redisson_lock__channel:{a}":      false,
		"news":                            false,
		"":                                false,
	} {
		if got := rules.CoversChannel([]byte(channel)); got != covered {
			t.Errorf("%q: %t", channel, got)
		}
	}
}

func TestCoversDoesNotAllocate(t *testing.T) {
	rules := Rules{{Match: "lock:*", DB: AnyDB}, {Match: "*_LOCK", DB: AnyDB}}
	for _, key := range []string{"lock:a", "some:ordinary:key", "lock-signal:a", "redisson_lock_queue:{a}", "{a}:1:rwlock_timeout:1"} {
		name := []byte(key)
		if n := testing.AllocsPerRun(100, func() { rules.Covers(0, name) }); n != 0 {
			t.Errorf("%s: %v allocations", key, n)
		}
	}
}
