package config

import (
	"fmt"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/endpoint"
)

// Scripts in testdata/*.txt show what the proxy makes of files of settings. Their events are
//
//	| upstream: none       a line of the file
//	read [-learn] [-admin :1]
//	                       what the file sets, or what is wrong with it
//	retry: 3               the file with this line in place of the one with its key, or at its end
//	hash                   of the file's shared settings
//	runs                   a proxy with this file
//	reload                 of that proxy with the file that now stands there
//	info => debug          a reload with another text in place of one in the file
//	redis://a:1 reaches :1 is this server the proxy itself?
//
// In a line \n begins a new one, and \t is a tab. "Editors refuse it, too" is said of files that the schema refuses.

func TestScripts(t *testing.T) {
	schema, _ := schemaOfTable(t)
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		s := &script{Script: told, t: t, schema: schema}
		for event := range told.Events {
			line, isText := strings.CutPrefix(event, "| ")
			if isText && s.isWhole {
				s.text, s.isWhole = "", false
			}
			if isText {
				s.text += line + "\n"
				continue
			}
			s.isWhole = true
			s.do(strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(event))
		}
	})
}

type script struct {
	*datatest.Script
	t       *testing.T
	schema  object
	text    string // of the file
	isWhole bool   // the next line begins another file
	running string
}

func (s *script) do(event string) {
	words := strings.Fields(event)
	from, to, isChange := strings.Cut(event, " =>")
	url, listen, isReach := strings.Cut(event, " reaches ")
	switch {
	case words[0] == "read":
		flags := Flags{}
		switch {
		case len(words) > 2:
			flags.Admin = words[2]
		case len(words) > 1:
			flags.Learn = true
		}
		s.read(s.text, flags)
	case event == "hash":
		s.Printf("%d", s.right("f", s.text).Hash())
	case event == "runs":
		s.running = s.text
	case event == "reload":
		s.reload(s.running, s.text)
	case isChange:
		s.reload(s.text, strings.Replace(s.text, from, strings.TrimPrefix(to, " "), 1))
	case isReach:
		server, err := endpoint.Parse(url)
		s.Printf("%v", reaches(server, listen))
		if err != nil {
			s.t.Fatal(err)
		}
	default:
		s.read(withLine(s.text, event), Flags{})
	}
}

// says prints what the proxy says. It never says a password.
func (s *script) says(format string, values ...any) {
	if strings.Contains(fmt.Sprintf(format, values...), "hunter") {
		s.t.Errorf("a password is shown: "+format, values...)
	}
	s.Printf(format, values...)
}

// right reads a file without mistakes.
func (s *script) right(name, text string) *Config {
	cfg, err := parse(name, []byte(text), Flags{})
	if err != nil {
		s.t.Fatal(err)
	}
	return cfg
}

func (s *script) read(text string, flags Flags) {
	cfg, err := parse("f.yaml", []byte(text), flags)
	if err != nil {
		s.says("%v", err)
	} else {
		s.shows(cfg)
	}
	if err := refusedBy(s.schema, text); err != nil {
		s.says("Editors refuse it, too.")
	}
}

// shows prints what differs from the initial settings, with the passwords.
func (s *script) shows(cfg *Config) {
	for _, shown := range cfg.Show(false) {
		s.says("%s: %s", shown.Name, shown.Value)
	}
	server := func(name string, e endpoint.Endpoint) {
		s.Printf("%s: %s %s, user %q, password %q, database %d", name, e.Network, e.Address, e.Username, string(e.Password), e.DB)
		if e.TLS != nil {
			s.Printf("%s: TLS with %s", name, e.TLS.Options().ServerName)
		}
	}
	if cfg.Upstream.Kind == UpstreamServer {
		server("upstream", cfg.Upstream.Server)
	}
	for i, e := range cfg.Masters.Servers {
		server(elementKey("masters", i), e)
	}
	if cfg.Auth.Password != "" {
		s.Printf("password: %q", string(cfg.Auth.Password))
	}
	for _, user := range cfg.Auth.Users {
		s.Printf("user %s: password %q, may %s", user.Name, string(user.Password), user.May)
	}
	s.Printf("embedded servers: %q", cfg.EmbeddedServers())
}

func (s *script) reload(before, after string) {
	old, next := s.right("old.yaml", before), s.right("f.yaml", after)
	plan, err := PlanReload(old, next)
	if err != nil {
		s.says("%v", err)
		return
	}
	for _, change := range plan.Changes {
		s.says("%s", change)
	}
	if len(plan.New) > 0 {
		s.says("another server: %s", strings.Join(plan.New, " "))
	}
	if len(plan.Entered) > 0 {
		s.says("other credentials: %s", strings.Join(plan.Entered, " "))
	}
	if old.Hash() != next.Hash() {
		s.says("another hash")
	}
}

// withLine replaces the line with the same key, or adds the line at the end.
func withLine(text, line string) string {
	key, _, _ := strings.Cut(line, ":")
	for old := range strings.Lines(text) {
		if strings.HasPrefix(old, key+":") {
			return strings.Replace(text, old, line+"\n", 1)
		}
	}
	return text + line + "\n"
}
