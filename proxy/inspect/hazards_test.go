package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
)

// testServers makes a configuration and healthy facts for n masters.
func testServers(n int) (*config.Config, *Facts, []Facts) {
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamServer, Server: endpoint.Endpoint{Name: "up:6379", Network: "tcp", Address: "up:6379"}}
	cfg.Masters = config.Masters{}
	upstream := &Facts{Title: "upstream", Name: "up:6379", Product: "redis", Version: "7.0.15", Role: "master", RunID: "up", Databases: 16, Policy: "noeviction"}
	var masters []Facts
	for i := range n {
		name := fmt.Sprintf("m%d:6379", i+1)
		cfg.Masters.Servers = append(cfg.Masters.Servers, endpoint.Endpoint{Name: name, Network: "tcp", Address: name})
		facts := *upstream
		facts.Title, facts.Name, facts.RunID = fmt.Sprintf("master %d", i+1), name, fmt.Sprintf("run-id-of-%d", i+1)
		masters = append(masters, facts)
	}
	return cfg, upstream, masters
}

func TestHazards(t *testing.T) {
	for _, row := range []struct {
		name    string
		masters int
		change  func(cfg *config.Config, upstream *Facts, masters []Facts)
		want    []Hazard
	}{
		{name: "all is well", masters: 3},
		{name: "five", masters: 5},
		{name: "one", masters: 1, want: []Hazard{{Level: hazardWarning, Text: "1 master: no master may fail; use 3 or 5"}}},
		{name: "two", masters: 2, want: []Hazard{{Level: hazardWarning, Text: "2 masters: no master may fail; use 3 or 5"}}},
		{name: "even", masters: 4, want: []Hazard{{Level: hazardWarning, Text: "4 masters: only 1 may fail, as with 3, and a lock needs 3 answers instead of 2; use 3 or 5"}}},
		{name: "six", masters: 6, want: []Hazard{{Level: hazardWarning, Text: "6 masters: only 2 may fail, as with 5, and a lock needs 4 answers instead of 3; use 5 or 7"}}},
		{name: "upstream away", masters: 3, change: func(_ *config.Config, u *Facts, _ []Facts) {
			*u = Facts{Title: u.Title, Name: u.Name, Err: errors.New("refused")}
		}, want: []Hazard{{Level: hazardAbsent, Text: "the upstream (up:6379) cannot be used: refused (deploy/INCIDENTS.md#noupstream)"}}},
		{name: "a minority away", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[1].Err = errors.New("refused")
		}, want: []Hazard{{Level: hazardAbsent, Text: "master 2 (m2:6379) cannot be used: refused (deploy/INCIDENTS.md#unreachable)"}}},
		{name: "a majority away", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[0].Err, m[1].Err = errors.New("a"), errors.New("b")
		}, want: []Hazard{
			{Level: hazardAbsent, Text: "master 1 (m1:6379) cannot be used: a (deploy/INCIDENTS.md#unreachable)"},
			{Level: hazardAbsent, Text: "master 2 (m2:6379) cannot be used: b (deploy/INCIDENTS.md#unreachable)"},
			{Level: hazardAbsent, Text: "1 of 3 masters can be used, 2 are needed to decide a lock (deploy/INCIDENTS.md#quorumlost)"},
		}},
		{name: "one server twice", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[2].RunID = m[0].RunID
		}, want: []Hazard{{Level: hazardRefused, Text: "master 1 (m1:6379) and master 3 (m3:6379) are the same server (run_id run-id-o); one server has one vote; list another one"}}},
		{name: "a replica", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[0].Role = "slave"
		}, want: []Hazard{{Level: hazardAbsent, Text: "master 1 (m1:6379) is a replica, so it must not vote: its own master can overwrite its data; list independent servers"}}},
		{name: "a cluster", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[0].Cluster = true
		}, want: []Hazard{{Level: hazardRefused, Text: "master 1 (m1:6379) runs in cluster mode: it refuses keys of other slots; list independent servers"}}},
		{name: "an upstream in cluster mode", masters: 3, change: func(_ *config.Config, u *Facts, _ []Facts) {
			u.Cluster = true
		}, want: []Hazard{{Level: hazardRefused, Text: "the upstream (up:6379) runs in cluster mode: it refuses keys of other slots, and cluster clients would bypass the proxy; use an upstream without cluster mode"}}},
		{name: "evicting", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[0].maxmemory, m[0].Policy = true, "volatile-lru"
			m[1].maxmemory = true        // without evicting: a full master fails to vote
			m[2].Policy = "volatile-lru" // without a limit: never full
		}, want: []Hazard{{Level: hazardAbsent, Text: "master 1 (m1:6379) may evict locks when its memory is full (maxmemory-policy volatile-lru), so it does not vote; set noeviction"}}},
		{name: "refusing writes", masters: 3, change: func(_ *config.Config, u *Facts, m []Facts) {
			u.unsaved, m[0].refusal, m[1].Role, m[1].refusal = true, "it is full", "slave", "it is read-only"
		}, want: []Hazard{
			{Level: hazardWarning, Text: "the upstream (up:6379) cannot write to its disk, so it refuses writes; its log says why"},
			{Level: hazardAbsent, Text: "master 1 (m1:6379) does not vote: it is full"},
			{Level: hazardAbsent, Text: "master 2 (m2:6379) is a replica, so it must not vote: its own master can overwrite its data; list independent servers"},
		}},
		{name: "few databases", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[0].Databases, m[1].Databases = 1, 0
		}, want: []Hazard{{Level: hazardWarning, Text: "master 1 (m1:6379) has 1 database, the upstream has 16: locks in a higher database cannot be stored; raise databases there"}}},
		{name: "rules for databases that are not there", masters: 3, change: func(cfg *config.Config, u *Facts, m []Facts) {
			cfg.Locks = route.Rules{{Match: "a*", DB: route.AnyDB}, {Match: "b*", DB: 15}, {Match: "c*", DB: 98}, {Match: "d*", DB: 99}}
			u.Databases, m[0].Databases, m[1].Databases, m[2].Databases = 99, 128, 0, 16
		}, want: []Hazard{
			{Level: hazardWarning, Text: `locks[2] ("c*", db 98): master 3 (m3:6379) has 16 databases and cannot vote on these locks; raise databases there`},
			{Level: hazardWarning, Text: `locks[3] ("d*", db 99): this rule is never used, because the upstream has only the databases 0 to 98; correct its db`},
			{Level: hazardWarning, Text: "master 3 (m3:6379) has 16 databases, the upstream has 99: locks in a higher database cannot be stored; raise databases there"},
		}},
		{name: "rules for databases that are not there, without an upstream", masters: 3, change: func(cfg *config.Config, u *Facts, m []Facts) {
			cfg.Upstream = config.Upstream{Kind: config.UpstreamNone}
			cfg.Locks = route.Rules{{Match: "b*", DB: 15}, {Match: "c*", DB: 16}}
			m[0].Databases, m[1].Databases, m[2].Databases = 99, 99, 99
		}, want: []Hazard{
			{Level: hazardWarning, Text: `locks[1] ("c*", db 16): this rule is never used, because this proxy has only the databases 0 to 15; correct its db`},
		}},
		{name: "no rights", masters: 3, change: func(_ *config.Config, _ *Facts, m []Facts) {
			m[0] = Facts{Title: m[0].Title, Name: m[0].Name, untold: errors.New("NOPERM")}
		}, want: []Hazard{{Level: hazardWarning, Text: "master 1 (m1:6379) refused INFO, so its role and version are unknown; grant it (the server says: NOPERM)"}}},
		{name: "upstream is a master", masters: 3, change: func(_ *config.Config, u *Facts, m []Facts) {
			m[1].RunID = u.RunID
		}, want: []Hazard{{Level: hazardWarning, Text: "the upstream (up:6379) is also master 2: they fail together; FLUSHALL there puts the master in quarantine; SWAPDB, or a script with undeclared keys, can erase its locks unnoticed; use a server of its own for each"}}},
		{name: "embedded", masters: 0, change: func(cfg *config.Config, _ *Facts, _ []Facts) {
			*cfg = *config.Demo()
		}, want: []Hazard{
			{Level: hazardWarning, Text: "demo: the masters are embedded in this process, for trying the proxy out; they forget all locks when it ends"},
			{Level: hazardWarning, Text: "demo: the upstream is embedded in this process, for trying the proxy out; it forgets everything when it ends"},
		}},
	} {
		cfg, upstream, masters := testServers(row.masters)
		if row.change != nil {
			row.change(cfg, upstream, masters)
		}
		if cfg.Upstream.Kind != config.UpstreamServer {
			upstream = nil
		}
		got := Answers{cfg, upstream, masters}.Hazards()
		for i := range got {
			if got[i].Kind == "" {
				t.Errorf("%s: no kind for %q", row.name, got[i].Text)
			}
			got[i].Hazard = events.Hazard{}
		}
		if fmt.Sprint(got) != fmt.Sprint(row.want) {
			t.Errorf("%s\n got %v\nwant %v", row.name, got, row.want)
		}
	}
}

// Hazards warn of an address that other machines can reach and that asks for no login.
func TestOpenHazards(t *testing.T) {
	certificates := config.TLS{Listen: ":6390", AuthClients: "yes"}
	for _, row := range []struct {
		name string
		cfg  config.Config
		open string
	}{
		{"everybody", config.Config{Listen: "0.0.0.0:6380", TLS: config.TLS{Listen: "10.0.0.1:6390"}}, "listen (0.0.0.0:6380), tls.listen (10.0.0.1:6390)"},
		{"every address", config.Config{Listen: ":6380"}, "listen (:6380)"},
		{"a name", config.Config{Listen: "db.example:6380"}, "listen (db.example:6380)"},
		{"the page", config.Config{Listen: ":6380", Admin: ":9380", Auth: config.Auth{Password: "hunter2"}}, "admin (:9380)"},
		{"loopback", config.Config{Listen: "[::1]:6380", Admin: "127.0.0.1:9380", TLS: config.TLS{Listen: "localhost:6390"}}, ""},
		{"certificates", config.Config{Listen: "127.0.0.1:6380", TLS: certificates}, ""},
		{"a socket", config.Config{Listen: "unix:/run/redlock-proxy.sock"}, ""},
		{"a password", config.Config{Listen: ":6380", Auth: config.Auth{Password: "hunter2"}}, ""},
		{"users", config.Config{Listen: ":6380", Auth: config.Auth{Users: []config.User{{Name: "app"}}}}, ""},
	} {
		var open []string
		for _, hazard := range settingHazards(&row.cfg, os.DevNull) {
			address, _, _ := strings.Cut(hazard.Text, " accepts everyone")
			address, _, _ = strings.Cut(address, " shows the keys of all locks")
			open = append(open, address)
		}
		if got := strings.Join(open, ", "); got != row.open {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

// Many clients wait for 2 s. A lock command has to end well before.
func TestSettingsThatAreTooSlowForClients(t *testing.T) {
	for _, row := range []struct {
		timeout, delay time.Duration
		count          int
		slow           bool
	}{
		{50 * time.Millisecond, 200 * time.Millisecond, 3, false},
		{225 * time.Millisecond, 200 * time.Millisecond, 3, false},
		{226 * time.Millisecond, 200 * time.Millisecond, 3, true},
		{1500 * time.Millisecond, time.Second, 0, false},
		{1501 * time.Millisecond, time.Second, 0, true},
	} {
		found := settingHazards(&config.Config{MasterTimeout: row.timeout, Retry: config.Retry{Count: row.count, Delay: row.delay}}, os.DevNull)
		if (len(found) > 0) != row.slow {
			t.Errorf("%v: %v", row, found)
		}
	}
}

// With reuse_port the kernel must move clients from a closing listener to another, or they are reset.
func TestKernelThatResetsClients(t *testing.T) {
	setting := filepath.Join(t.TempDir(), "tcp_migrate_req")
	for _, row := range []struct {
		text  string // "": an old kernel, without the setting
		reuse bool
		found bool
	}{{"1\n", true, false}, {"0\n", true, true}, {"", true, true}, {"0\n", false, false}} {
		os.Remove(setting)
		if row.text != "" {
			if err := os.WriteFile(setting, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if found := settingHazards(&config.Config{ReusePort: row.reuse}, setting); (len(found) > 0) != row.found {
			t.Errorf("%+v: %v", row, found)
		}
	}
}

func settingHazards(cfg *config.Config, migrate string) (found hazardList) {
	found.settings(cfg, migrate)
	return found
}

func TestFactsFromInfo(t *testing.T) {
	var f Facts
	f.learn("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nredis_mode:cluster\r\nrun_id:abc\r\n# Replication\r\nrole:slave\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n")
	want := Facts{Product: "valkey", Version: "7.2.4", Role: "slave", RunID: "abc", Cluster: true, maxmemory: true, Policy: "allkeys-lru"}
	if !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v", f)
	}
}
