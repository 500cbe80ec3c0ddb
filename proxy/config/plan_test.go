package config

import (
	"slices"
	"strings"
	"testing"
)

const reloadBase = `listen: 127.0.0.1:6380
admin: 127.0.0.1:9380
upstream: redis://u:hunter1@up:1
masters:
  - redis://a:1
  - redis://:hunter1@b:1
  - redis://c:1
locks:
  - match: "lock:*"
auth: {password: hunter1}
log:
  level: info
`

func planOf(t *testing.T, before, after string) (Plan, error) {
	t.Helper()
	old, err := parseConfig("old.yaml", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	next, err := parseConfig("f.yaml", []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	return PlanReload(old, next)
}

// The rows are all changes that a reload can make, as the log line shows them.
func TestReloadChanges(t *testing.T) {
	for _, row := range []struct {
		from, to string // in the file
		want     []string
		isNew    []string
		entered  []string
	}{
		{"", "", nil, nil, nil},
		{`"lock:*"`, `"job:*"`, []string{`locks: "lock:*" -> "job:*"`}, nil, nil},
		{"locks:\n  - match: \"lock:*\"", "locks: learn", []string{`locks: "lock:*" -> learn`}, nil, nil},
		{`"lock:*"`, "\"lock:*\"\n    renew: 10m\n    on_disconnect: release", []string{`locks: "lock:*" -> "lock:*", renew 10m, on_disconnect release`}, nil, nil},
		{`"lock:*"`, "\"lock:*\"\n    default_ttl: 1m", []string{`locks: "lock:*" -> "lock:*", default_ttl 1m`}, nil, nil},
		{`"lock:*"`, "\"lock:*\"\n    wait: 2s", []string{`locks: "lock:*" -> "lock:*", wait 2s`}, nil, nil},
		{"log:", "ignore: [a*, \"b:*\"]\nlog:", []string{`ignore: nothing -> "a*" "b:*"`}, nil, nil},
		{"log:", "master_timeout: 80ms\nlog:", []string{"master_timeout: 50ms -> 80ms"}, nil, nil},
		{"log:", "retry: {count: 5, delay: 1s}\nlog:", []string{"retry.count: 3 -> 5", "retry.delay: 200ms -> 1s"}, nil, nil},
		{"log:", "heal: {every: 1m}\nlog:", []string{"heal.every: 0s -> 1m"}, nil, nil},
		{"log:", "clock_drift: 0.02\nrestart_delay: 1m\nmax_quarantine: 2m\nlog:",
			[]string{"clock_drift: 0.01 -> 0.02", "restart_delay: 30s -> 1m", "max_quarantine: 10m -> 2m"}, nil, nil},
		{"log:", "limits: {clients: 5, bulk: 1mb, idle: 1s}\nlog:",
			[]string{"limits.clients: 10000 -> 5", "limits.idle: 0s -> 1s", "limits.bulk: 512mb -> 1mb"}, nil, nil},
		{"info", "debug", []string{"log.level: info -> debug"}, nil, nil},
		{"{password: hunter1}", "{password: hunter2}", []string{"auth.password"}, nil, nil},
		{"u:hunter1@up:1", "u:hunter2@up:1", []string{"upstream: credentials"}, nil, []string{"upstream"}},
		{"9380", "9380\nadmin_hosts: [a.example]", []string{`admin_hosts: nothing -> "a.example"`}, nil, nil},
		{"log:", "auth_cache: 0s\nupstream_connections: own\nlog:", []string{"upstream_connections: shared -> own", "auth_cache: 5m -> 0s"}, nil, nil},
		{"{password: hunter1}", "upstream", []string{"auth: - -> upstream", "auth.password"}, nil, nil},
		{"{password: hunter1}", "{password: hunter1, may: locks, users: [{name: a, password: hunter2}]}", []string{"auth.may: both -> locks", "auth.users: added a"}, nil, nil},
		{"@up:1", "@up:1/3", []string{"upstream: database: 0 -> 3"}, nil, nil},
		{"redis://u:hunter1@up:1", "none", []string{"upstream: up:1 -> none"}, []string{"upstream"}, nil},
		{"@up:1", "@other:1", []string{"upstream: up:1 -> other:1"}, []string{"upstream"}, nil},
		{"hunter1@b:1", "hunter2@b:1", []string{"masters[1]: credentials"}, nil, []string{"masters[1]"}},
		{"redis://c:1", "rediss://c:1", []string{"masters[2]: credentials"}, nil, []string{"masters[2]"}},
		{"redis://c:1", "redis://d:1", []string{"masters[2]: c:1 -> d:1"}, []string{"masters[2]"}, nil},
		{"redis://c:1", "redis://c:1\n  - redis://d:1\n  - redis://:hunter1@e:1", []string{"masters[3]: adds d:1", "masters[4]: adds e:1"}, []string{"masters[3]", "masters[4]"}, nil},
		{"\n  - redis://c:1", "", []string{"masters[2]: removes c:1"}, nil, nil},
		{"redis://c:1", "redis://:hunter1@c:1\n  - redis://d:1", []string{"masters[2]: credentials", "masters[3]: adds d:1"}, []string{"masters[3]"}, []string{"masters[2]"}},
	} {
		plan, err := planOf(t, reloadBase, strings.Replace(reloadBase, row.from, row.to, 1))
		if err != nil {
			t.Errorf("%q: %v", row.to, err)
			continue
		}
		if !slices.Equal(plan.Changes, row.want) || !slices.Equal(plan.New, row.isNew) || !slices.Equal(plan.Entered, row.entered) {
			t.Errorf("%q: %+v", row.to, plan)
		}
		if strings.Contains(strings.Join(plan.Changes, ""), "hunter") {
			t.Errorf("%q: a password is shown in %q", row.to, plan.Changes)
		}
	}
}

// The error for a change that needs a restart names the key and its line.
func TestReloadRefusals(t *testing.T) {
	const restart = " by a reload, only by a restart"
	for _, row := range []struct{ from, to, want string }{
		{"6380", "6381", "f.yaml:1: listen: cannot be changed from 127.0.0.1:6380 to 127.0.0.1:6381" + restart},
		{"6380\n", "6380\nreuse_port: yes\n", "f.yaml:2: reuse_port: cannot be changed from no to yes" + restart},
		{"6380\n", "6380\nunix_permissions: 0770\n", "f.yaml:2: unix_permissions: cannot be changed from 0700 to 0770" + restart},
		{"127.0.0.1:9380", `""`, "f.yaml:2: admin: cannot be changed from 127.0.0.1:9380 to -" + restart},
		{"  level: info", "  level: debug\n  format: json", "f.yaml:13: log.format: cannot be changed from text to json" + restart},
		{"redis://u:hunter1@up:1", "embedded", "f.yaml:3: upstream: cannot be changed from up:1 to embedded" + restart},
		{"masters:\n  - redis://a:1\n  - redis://:hunter1@b:1\n  - redis://c:1", "masters: embedded",
			"f.yaml:4: masters: cannot be changed from a:1, b:1, c:1 to 5 embedded" + restart},
		{"redis://a:1", "redis://A:1", "f.yaml:5: masters[0]: A:1 is a:1 under another name; keep the active one"},
		{"listen: 127.0.0.1:6380\n", "listen: 127.0.0.1:1\nlimits: {clients: 5}\n", "f.yaml:1: listen: cannot be changed from 127.0.0.1:6380 to 127.0.0.1:1" + restart},
	} {
		plan, err := planOf(t, reloadBase, strings.Replace(reloadBase, row.from, row.to, 1))
		if err == nil || err.Error() != row.want {
			t.Errorf("got  %v, %+v\nwant %s", err, plan, row.want)
		}
	}
	embedded := "upstream: embedded\nmasters: embedded\n"
	if plan, err := planOf(t, embedded, embedded+"master_timeout: 1s\n"); err != nil || !slices.Equal(plan.Changes, []string{"master_timeout: 50ms -> 1s"}) {
		t.Errorf("with embedded servers: %+v, %v", plan, err)
	}
}

// Masters that were not there when the proxy began to learn cannot come by a reload.
func TestReloadBringsNoMastersToALearner(t *testing.T) {
	_, err := planOf(t, "upstream: redis://h\nlocks: learn\n", "upstream: redis://h\nmasters: [redis://m]\n")
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:2: masters: cannot be added by a reload: ") {
		t.Errorf("the reload is answered %v", err)
	}
	if plan, err := planOf(t, "upstream: redis://h\nmasters: [redis://m]\nlocks: learn\n", "upstream: redis://h\nmasters: [redis://m]\n"); err != nil || !slices.Equal(plan.Changes, []string{`locks: learn -> "lock:*"`}) {
		t.Errorf("the rules are answered %v, %v", plan.Changes, err)
	}
}
