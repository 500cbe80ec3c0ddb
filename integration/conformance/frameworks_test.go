package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// A framework is a library that makes a lock's key of more than the lock's name. The
// handbook's table of frameworks has its key and its rule.
type framework struct {
	row     string // how its row of the table begins
	library library
	lock    string
}

func frameworks(t *testing.T) []framework {
	sessions := libraryNamed(t, "phpredis sessions")
	sessions.upstreamKeys = []string{"PHPREDIS_SESSION:report"}
	own := libraryNamed(t, "django-redis 7.0.0")
	own.selects, own.rule = "own", "lock:*"
	redbeat := library{version: "2.4.2", rule: "redbeat::lock", upstreamKeys: []string{"redbeat:*"},
		program: []string{"python", "conformance_redbeat.py", "celery-redbeat-2.4.2"}}
	return []framework{
		{"Laravel", libraryNamed(t, "Laravel cache lock over phpredis"), "report"},
		{"Symfony Lock", libraryNamed(t, "Symfony Lock over phpredis"), "lock:report"},
		{"phpredis, sessions", sessions, "report"},
		{"django-redis", libraryNamed(t, "django-redis 7.0.0"), "lock:report"},
		{"django-redis, a cache for locks", own, "report"},
		{"Spring RedisLockRegistry", libraryNamed(t, "Spring RedisLockRegistry 7.1.0 spin lock"), "lock:report"},
		{"ShedLock", libraryNamed(t, "ShedLock 7.10.1 redis-spring"), "report"},
		{"Redisson", libraryNamed(t, "Redisson 4.7.0 RLock"), "lock:report"},
		{"celery-once", libraryNamed(t, "celery-once 3.0.1"), "report"},
		{"celery-singleton", libraryNamed(t, "celery-singleton 0.3.1"), "report"},
		{"celery-redbeat", redbeat, "report"},
	}
}

// TestFrameworkKeys: each framework writes the key that the handbook says, and no other. The
// rule that the handbook says makes this key a lock. So does the rule "*" of a proxy that is
// for locks only. A framework that keeps other data through the same connection has no use
// for such a proxy.
func TestFrameworkKeys(t *testing.T) {
	t.Parallel()
	handbook := rig.ReadFile(t, "../deploy/INSTALL.md")
	c := rig.StartServers(t)
	var rules []string
	for _, f := range frameworks(t) {
		if !slices.Contains(rules, f.library.rule) {
			rules = append(rules, f.library.rule)
		}
	}
	before, alone := c.AddProxy(t, rig.Options{Rules: rules}), c.AddProxy(t, rig.Options{Upstream: "none", Rules: []string{"*"}})
	for _, f := range frameworks(t) {
		t.Run(f.row, func(t *testing.T) {
			key := f.locks(t, c, before)
			if !hasRow(handbook, f.row, f.library.version, "`"+key+"`", "`"+f.library.rule+"`") {
				t.Errorf("the handbook's table has no row of %s, version %q, with the key %s and the rule %s", f.row, f.library.version, key, f.library.rule)
			}
			if covered, err := path.Match(f.library.rule, key); !covered {
				t.Errorf("the rule %s does not match the key %s (%v)", f.library.rule, key, err)
			}
			if len(f.library.upstreamKeys) == 0 {
				f.locks(t, c, alone)
			}
		})
	}
}

// locks has the framework take and release its lock, and returns the lock's key.
func (f framework) locks(t *testing.T, c *rig.Cluster, proxy *rig.Proxy) string {
	client, err := startClient(f.row, f.library.install(t), fmt.Sprint(proxy.Port), f.library.selects)
	if err != nil {
		t.Fatal(err)
	}
	defer client.kill()
	asks := func(words ...any) string {
		t.Helper()
		answer, err := client.ask(words...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", words, err, client.log.Tail(30))
		}
		return answer
	}
	if version := asks("version"); f.library.version != "" && version != f.library.version {
		t.Errorf("the version is %s, not %s", version, f.library.version)
	}
	key := asks("key", f.lock)
	if answer := asks("acquire", f.lock, 120_000); answer != "yes" {
		t.Errorf("acquire is answered %q", answer)
	}
	onMasters(t, c, key)
	if answer := asks("release", f.lock); answer != "yes" {
		t.Errorf("release is answered %q", answer)
	}
	onMasters(t, c)
	for _, beside := range keysOn(t, c.Upstream) {
		if !matchesAny(f.library.upstreamKeys, beside) {
			t.Errorf("%s is on the upstream", beside)
		}
	}
	c.Upstream.Direct.FlushAll(t.Context())
	return key
}

// hasRow tells whether a table has a row that begins so and contains all of these texts.
func hasRow(text, row string, contents ...string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| "+row) && !slices.ContainsFunc(contents, func(content string) bool { return !strings.Contains(line, content) }) {
			return true
		}
	}
	return false
}

// onMasters waits until a quorum has these keys and no other, and the other masters have no
// other either.
func onMasters(t *testing.T, c *rig.Cluster, want ...string) {
	t.Helper()
	rig.WaitFor(t, fmt.Sprintf("the masters have the keys %q", want), func() error {
		having := 0
		for _, master := range c.Masters {
			switch keys := keysOn(t, master); {
			case slices.Equal(keys, want):
				having++
			case len(keys) > 0:
				return fmt.Errorf("%s has the keys %q", master.Name, keys)
			}
		}
		if having < rig.Quorum {
			return fmt.Errorf("%d masters have them", having)
		}
		return nil
	})
}

// keysOn returns the keys of a server but the proxy's own.
func keysOn(t *testing.T, server *rig.Server) []string {
	t.Helper()
	keys, err := server.Direct.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, "redlock-proxy:") })
	slices.Sort(keys)
	return keys
}
