package unruled

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

func TestPatternOf(t *testing.T) {
	for key, want := range map[string]string{
		"lock:report":          "lock:report",
		"lock:17":              "lock:*",
		":1:lock:report":       ":*:lock:report",
		"laravel_cache_order7": "laravel_cache_order*",
		"PHPREDIS_SESSION:0b1rl0e6mfsm9s4mhp8d3mr5kf_LOCK": "PHPREDIS_SESSION:*_LOCK",
		"lock:6ba7b810-9dad-11d1-80b4-00c04fd430c8:x":      "lock:*:x",
		"lock:6BA7B810-9DAD-11D1-80B4-00C04FD430C8":        "lock:*",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8y":            "*dad-*d*b*c*fd*c*y", // no UUID
		"lock:00c04fd4":                                    "lock:*",
		"lock:deadbeef":                                    "lock:deadbeef",
		"cafe4:v2":                                         "cafe*:v*",
		"lock:2026-11-26":                                  "lock:*",
		"host:10.0.0.1:8":                                  "host:*:*",
		"user:bob@example.com":                             "user:bob@example.com",
		"{cart}:9:lock":                                    "{cart}:*:lock",
		"a*b?c[d]\\":                                       `a\*b\?c\[d]\\`,
		"a*-1":                                             `a\*-*`,
		"\xac\xed\x00\x05t\x00\x03lock:é":                  "*t*lock:*",
		"lock:" + strings.Repeat("x", longestWord):         "lock:*",
		strings.Repeat("ab:", 100):                         strings.Repeat("ab:", 31) + "ab*",
		"":                                                 "",
		"17:4":                                             "*:*",
	} {
		got := string(patternOf(nil, []byte(key)))
		if !resp.GlobMatch(got, []byte(key)) {
			t.Errorf("%q does not match its pattern %q", key, got)
		}
		if got != want {
			t.Errorf("%q becomes %q, want %q", key, got, want)
		}
	}
}

func FuzzPatternOf(f *testing.F) {
	for _, key := range []string{"lock:17", "a*-1", "\x00\xff?", strings.Repeat("x*1", 60), "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "4-5.6"} {
		f.Add([]byte(key))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		glob := patternOf(nil, key)
		if !resp.GlobMatch(string(glob), key) || len(glob) > longestPattern+1 {
			t.Errorf("%q becomes %q", key, glob)
		}
	})
}

func patternsOf(keys ...string) (list []string) {
	var p patterns
	for _, key := range keys {
		p.count([]byte(key), 0, time.Now())
	}
	for _, f := range p.list(nil, nil) {
		list = append(list, fmt.Sprintf("%s %d", f.Match, f.Uses))
	}
	slices.Sort(list)
	return list
}

var names = strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu")

func with(format string) (keys []string) {
	for _, name := range names {
		keys = append(keys, fmt.Sprintf(format, name))
	}
	return keys
}

func TestSiblingsAreMerged(t *testing.T) {
	for name, test := range map[string]struct{ keys, want []string }{
		"few":              {with("lock:%s")[:8], nil},
		"names at the end": {with("lock:%s"), []string{"lock:* 12"}},
		"names in front":   {with("%s:order:lock"), []string{"*:order:lock 12"}},
		"deeper":           {append([]string{"lock:a:1", "lock:b:2"}, with("lock:%s")...), []string{"lock:* 14"}},
		"afterwards":       {append(with("lock:%s"), "lock:x:y"), []string{"lock:* 13"}},
		"beside others":    {append(with("cache_%s"), "cached", "job"), []string{"cache_* 12", "cached 1", "job 1"}},
	} {
		if test.want == nil {
			for _, key := range test.keys {
				test.want = append(test.want, key+" 1")
			}
			slices.Sort(test.want)
		}
		if got := patternsOf(test.keys...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := patternsOf(names...); len(got) != len(names) {
		t.Errorf("names alone became %q: a rule for all keys", got)
	}
}

func TestPatternsAreBounded(t *testing.T) {
	var p patterns
	letters := func(n int) string {
		return string([]byte{'a' + byte(n%26), 'a' + byte(n/26%26), 'a' + byte(n/676)})
	}
	for n := range 10 * mostPatterns {
		p.count([]byte(letters(n)), 0, time.Now())
	}
	if n := len(p.list(nil, nil)); n != mostPatterns {
		t.Errorf("%d patterns", n)
	}
}

func TestNoRuleForEveryKey(t *testing.T) {
	if rule := (Found{Match: "*:*"}).Rule(); !strings.HasPrefix(rule, "#") {
		t.Errorf("the rule is %q", rule)
	}
}
