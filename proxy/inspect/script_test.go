package inspect

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// Scripts in testdata/*.txt show what is said of servers. Their events are
//
//	masters 3             an upstream and masters that are in order, with the settings of -demo otherwise
//	list 1/3 2/3 -        masters with these numbers in their markers, or without one
//	m2 role=slave         what a server says of itself (server.answers); up is the upstream
//	m2 marker set=xyz     a word of its marker, all of it, or none
//	set rule=b* db=15     a setting (script.set)
//	hazards, markers, -new, settings, pause
//	                      what is said then of servers, of markers, of a start with -new, of settings;
//	                      how long the monitor waits before it asks again
//	found few 2 masters | duplicate one server twice
//	                      hazards that the monitor finds, and what it logs
//	table, json           of the report of -check
//	sees up away refused  what the monitor learns of an upstream, a second after the last time: away, back, gone
//	denied TEXT           whether this error denies a key
//	info TEXT             what a server is by this INFO
//	lowest 7.0 6.2        of versions

var scriptTime = time.Date(2026, 11, 21, 5, 10, 0, 0, time.UTC)

func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		s := &script{Script: told, t: t, log: &proxytest.Log{}, now: scriptTime}
		s.monitor = &Monitor{log: slog.New(slog.NewTextHandler(s.log, nil))}
		s.migrate = os.DevNull
		for event := range told.Events {
			s.do(event, strings.Fields(event))
		}
	})
}

type script struct {
	*datatest.Script
	t       *testing.T
	a       Answers
	migrate string // the kernel's file
	monitor *Monitor
	log     *proxytest.Log
	now     time.Time
}

func (s *script) do(event string, words []string) {
	switch _, rest, _ := strings.Cut(event, " "); words[0] {
	case "masters":
		n, _ := strconv.Atoi(words[1])
		s.begin(n)
	case "list":
		s.begin(len(words) - 1)
		for i, word := range words[1:] {
			s.a.Masters[i].marker = markerFacts{}
			if _, members, ok := strings.Cut(word, "/"); ok {
				n, _ := strconv.Atoi(members)
				s.a.Masters[i].marker = markerOf(i + 1)
				s.mark(&s.a.Masters[i], "member="+word)
				s.mark(&s.a.Masters[i], "joined="+strings.Repeat("1,", n-1)+"1")
			}
		}
	case "set":
		s.set(words[1:])
	case "hazards":
		s.shows(s.a.Hazards())
	case "markers":
		var states []string
		for _, standing := range statesOf(s.a.Masters) {
			states = append(states, standing.State.String())
		}
		s.Printf("states: %s", strings.Join(states, " "))
		lines, found := s.a.markerLines()
		for _, line := range lines {
			s.Printf("%s", line)
		}
		s.shows(found)
	case "-new":
		s.a.Config.NewSet = true
		var found hazardList
		found.newSet(s.a, scriptTime)
		s.shows(found)
		s.Printf("refused: %v, because of a set: %v", Refused(found) != nil, errors.Is(Refused(found), ErrSetExists))
	case "settings":
		var found hazardList
		found.settings(s.a.Config, s.migrate)
		s.shows(found)
	case "table":
		var out strings.Builder
		writeServers(&out, s.a.servers(nil))
		s.Printf("%s", out.String())
	case "json":
		var out strings.Builder
		settings := settingList{{Name: "masters", Value: "m1:6379"}, {Name: "admin", Value: "-"}}
		report := Report{Fine: true, Configuration: "f.yaml", Settings: settings, Servers: s.a.servers(nil), Notes: []string{"a note"}, Hazards: s.a.Hazards()}
		if err := report.WriteJSON(&out); err != nil {
			s.t.Fatal(err)
		}
		s.Printf("%s", out.String())
	case "pause":
		s.Printf("%s", s.a.pause())
	case "found":
		s.monitor.hazards = nil
		for one := range strings.SplitSeq(rest, " | ") {
			if kind, text, ok := strings.Cut(one, " "); ok {
				level := map[string]hazardLevel{"duplicate": hazardRefused}[kind]
				s.monitor.hazards = append(s.monitor.hazards, Hazard{level, events.Hazard{Kind: kind}, text})
			}
		}
		s.logs(s.monitor.report)
	case "denied":
		s.Printf("%v", deniesKeys(errors.New(rest)))
	case "info":
		var f Facts
		f.learn(strings.ReplaceAll(rest, " ", "\r\n"))
		s.Printf("%s %s, %s, run %s, cluster %v, limit %v %s", f.Product, f.Version, f.Role, f.RunID, f.Cluster, f.maxmemory, f.Policy)
	case "lowest":
		s.Printf("%q", lowestVersion(words[1:]))
	case "sees":
		s.sees(words[1:])
	case "up":
		answers(s.a.Upstream, rest)
	default:
		n, err := strconv.Atoi(strings.TrimPrefix(words[0], "m"))
		if err != nil {
			s.t.Fatalf("what is that? %s", event)
		}
		m := &s.a.Masters[n-1]
		if change, isMarker := strings.CutPrefix(rest, "marker "); isMarker {
			s.mark(m, change)
			return
		}
		answers(m, rest)
	}
}

// begin makes a configuration and healthy answers of n masters.
func (s *script) begin(n int) {
	cfg, upstream, masters := testServers(n)
	for i := range masters {
		masters[i].marker = markerOf(i + 1)
	}
	s.a = Answers{cfg, upstream, masters}
}

func markerOf(number int) markerFacts {
	return markerFacts{text: fmt.Sprintf(testMarker, number, number, 0), clock: scriptTime}
}

func (s *script) mark(m *Facts, change string) {
	key, value, isWord := strings.Cut(change, "=")
	since, isTime := strings.CutPrefix(value, "now-")
	if ago, err := time.ParseDuration(since); isTime && err == nil && key == "set" { // named by the time of its beginning
		value = fmt.Sprintf("%08x%024x", scriptTime.Add(-ago).Unix(), 0xaabbccdd)
	} else if isTime && err == nil {
		value = strconv.FormatInt(scriptTime.Add(-ago).UnixMilli(), 10)
	}
	switch {
	case change == "none":
		m.marker.text = ""
	case strings.HasPrefix(change, "unread "):
		m.marker = markerFacts{unread: errors.New(strings.TrimPrefix(change, "unread "))}
	case isWord:
		m.marker.text = regexp.MustCompile(`\b`+key+`=\S+`).ReplaceAllLiteralString(m.marker.text, key+"="+value)
	default:
		m.marker.text = change
	}
}

// answers changes what a server says of itself.
func answers(f *Facts, change string) {
	key, value, _ := strings.Cut(change, "=")
	switch key {
	case "away":
		*f = Facts{Title: f.Title, Name: f.Name, Err: errors.New(value)}
	case "untold":
		*f = Facts{Title: f.Title, Name: f.Name, untold: errors.New(value)}
	case "run":
		f.RunID = value
	case "role":
		f.Role = value
	case "cluster":
		f.Cluster = true
	case "limit":
		f.maxmemory = true
	case "policy":
		f.Policy = value
	case "unsaved":
		f.unsaved = true
	case "refuses":
		f.refusal = value
	case "persistence":
		f.Persistence = value
	case "databases":
		f.Databases, _ = strconv.Atoi(value)
	}
}

// set changes the configuration.
func (s *script) set(words []string) {
	cfg := s.a.Config
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.Atoi(value)
		duration, _ := time.ParseDuration(value)
		switch key {
		case "demo":
			s.a = Answers{Config: config.Demo()}
			return
		case "upstream":
			cfg.Upstream, s.a.Upstream = config.Upstream{Kind: config.UpstreamNone}, nil
		case "rule":
			cfg.Locks = append(cfg.Locks, route.Rule{Match: value, DB: route.AnyDB})
		case "db":
			cfg.Locks[len(cfg.Locks)-1].DB = number
		case "listen":
			cfg.Listen = value
		case "tls":
			cfg.TLS.Listen = value
		case "certificates":
			cfg.TLS.AuthClients = value
		case "admin":
			cfg.Admin = value
		case "password":
			cfg.Auth.Password = endpoint.Secret(value)
		case "user":
			cfg.Auth.Users = []config.User{{Name: value}}
		case "timeout":
			cfg.MasterTimeout = duration
		case "retries":
			cfg.Retry.Count = number
		case "delay":
			cfg.Retry.Delay = duration
		case "reuse_port":
			cfg.ReusePort = value == "yes"
		case "kernel": // one that has no such setting has no such file
			s.migrate = filepath.Join(s.t.TempDir(), "tcp_migrate_req")
			if value != "" {
				_ = os.WriteFile(s.migrate, []byte(value+"\n"), 0o600)
			}
		}
	}
}

func (s *script) shows(hazards []Hazard) {
	for _, h := range hazards {
		level := map[hazardLevel]string{hazardWarning: "warning", hazardAbsent: "absent", hazardRefused: "refused"}[h.Level]
		s.Printf("%s, %s: %s", level, strings.TrimSpace(h.Kind+" "+h.Server), h.Text)
		if h.Kind == "" {
			s.t.Errorf("no kind for %q", h.Text)
		}
	}
}

// sees tells the monitor of the upstream.
func (s *script) sees(words []string) {
	s.now = s.now.Add(time.Second)
	f := &Facts{Name: words[0]}
	switch words[1] {
	case "away":
		f.Err = errors.New(strings.Join(words[2:], " "))
	case "gone":
		f = nil
	}
	s.logs(func() { s.monitor.sees(f, s.now) })
	if up, known := s.monitor.Upstream(); known {
		s.Printf("%s since %s, problem %q", up.Name, up.Since.Sub(scriptTime), up.Problem)
	} else {
		s.Printf("unknown")
	}
}

// logs prints the lines of the log without their times.
func (s *script) logs(do func()) {
	before := len(s.log.String())
	do()
	for line := range strings.Lines(s.log.String()[before:]) {
		_, line, _ = strings.Cut(line, " ")
		s.Printf("%s", line)
	}
}

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

const testMarker = "redlock-proxy/2 db=0 set=abc member=%d/3 epoch=2 joined=1,1,2@m3:6379 replid=- run=run-id-of-%d since=%d quarantine=30000 longest=90000 before=60000 turned=0"
