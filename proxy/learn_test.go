package proxy

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
)

const compareAndDelete = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"

func unruledOf(r *reloadable) (rules []string) {
	for _, found := range r.operators.UnruledLocks() {
		rules = append(rules, found.Rule())
	}
	return rules
}

// A proxy that learns takes nothing for a lock and needs no master that answers. What it found is shown, by -check too,
// until the rule is in the file.
func TestLearning(t *testing.T) {
	upstream, master := proxytest.StartRedis(t), proxytest.StartRedis(t)
	r := startReloadable(t, upstream, master)
	client := redis.NewClient(&redis.Options{Addr: r.listener.Addr().String()})
	defer client.Close()
	onUpstream := redis.NewClient(&redis.Options{Network: "unix", Addr: upstream.Socket})
	defer onUpstream.Close()
	ctx := context.Background()
	r.base = strings.Replace(r.base, "locks:\n  - match: \"lock:*\"\n", "locks: learn\n", 1)
	if err := r.reload("", ""); err == nil || !strings.Contains(err.Error(), "-move-keys") {
		t.Fatalf("rules went without -move-keys: %v", err)
	}
	if _, err := r.Reload(ctx, true); err != nil {
		t.Fatal(err)
	}
	if now := r.readiness(); !now.ready || !strings.Contains(now.text, config.LearningNotice) {
		t.Errorf("it says %s", now.text)
	}
	for _, key := range []string{"job:1", "job:2"} {
		if err := client.SetArgs(ctx, key, "me", redis.SetArgs{Mode: "NX", TTL: 90e9}).Err(); err != nil {
			t.Fatal(err)
		}
		if n := onUpstream.Exists(ctx, key).Val(); n != 1 {
			t.Errorf("%s is not on the upstream", key)
		}
		if err := client.Eval(ctx, compareAndDelete, []string{key}, "me").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if rules := unruledOf(r); len(rules) != 1 || rules[0] != "- match: 'job:*'" {
		t.Fatalf("it found %q", rules)
	}
	if n, uses := r.metric("redlock_unruled_patterns"), r.metric("redlock_unruled_uses_total"); n != "1" || uses != "2" {
		t.Errorf("the metrics are %s and %s", n, uses)
	}
	checks := func(cfg config.Config) (findings string) {
		cfg.Admin = r.web.Addr().String()
		for _, h := range Check(ctx, &cfg, false).Hazards {
			if h.Kind == "unruled" {
				findings += h.Text
			}
		}
		return findings
	}
	cfg := *r.current.Load().Config
	if found := checks(cfg); !strings.Contains(found, "job:*: the running proxy has seen keys like these used as locks (2 times)") {
		t.Errorf("-check finds %q", found)
	}
	cfg.Ignore = []string{"job:*"}
	if found := checks(cfg); found != "" {
		t.Errorf("-check of a file that ignores them finds %q", found)
	}
	r.write(strings.Replace(r.base, "locks: learn\n", "locks:\n  "+unruledOf(r)[0]+"\n", 1))
	if _, err := r.Reload(ctx, true); err != nil {
		t.Fatal(err)
	}
	if rules := unruledOf(r); len(rules) != 0 {
		t.Errorf("with the rule it shows %q", rules)
	}
	if err := client.Get(ctx, "job:1").Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
		t.Errorf("the keys have not moved: %v", err)
	}
}

// Without masters embedded ones stand in, which nobody must take for real ones.
func TestLearningWithoutMasters(t *testing.T) {
	cfg := config.Demo()
	cfg.Locks = nil
	p, _ := startWholeProxy(t, cfg)
	if text := p.readiness().text; strings.Contains(text, "masters are embedded") || !strings.Contains(text, config.LearningNotice) {
		t.Errorf("it says %s", text)
	}
	if text := p.Banner(); !strings.Contains(text, config.LearningNotice) || strings.Contains(text, "Try it") {
		t.Errorf("the banner is %s", text)
	}
}
