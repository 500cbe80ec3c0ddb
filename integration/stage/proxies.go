package stage

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"redlock-proxy/integration/rig"
)

// A proxy has a name, settings that a reload changes, and links if it wants them.
type proxy struct {
	*rig.Proxy
	stage    *stage
	name     string
	settings map[string]string
	links    map[string]*rig.Link
	since    time.Time // the time of its latest start
}

// proxy returns a proxy by its name, which may not be started yet.
func (s *stage) proxy(name string) *proxy {
	if s.proxies[name] == nil {
		s.proxies[name] = &proxy{stage: s, name: name, settings: map[string]string{}, links: map[string]*rig.Link{}}
	}
	return s.proxies[name]
}

// versions are other versions of the program.
var versions = map[string]rig.Change{
	// It cannot read what is on the masters once their number was changed. So were the versions before that, and so
	// will be this one if the markers change again.
	"earlier": {
		File: "redlock/marker/marker.go",
		Old:  `ResizedVersion = "redlock-proxy/4"`,
		New:  `ResizedVersion = "redlock-proxy/3"`,
	},
}

// binary returns the program of another version.
func (s *stage) binary(version string) string {
	if version == "current" {
		return rig.ProxyBinary
	}
	if s.binaries[version] == "" {
		s.binaries[version] = filepath.Join(s.t.TempDir(), "redlock-proxy-"+version)
		rig.BuildChanged(s.t, s.binaries[version], versions[version])
	}
	return s.binaries[version]
}

// set takes over settings: "masters 1-3; restart_delay 4s". Those that are no options of rig are lines of the file.
func (p *proxy) set(text string) {
	if other, is := strings.CutPrefix(text, "as "); is {
		p.settings = maps.Clone(p.stage.proxy(other).settings)
		return
	}
	if text == "" {
		return
	}
	for setting := range strings.SplitSeq(text, "; ") {
		name, value, _ := strings.Cut(setting, " ")
		p.settings[name] = value
	}
}

// options returns the settings as options.
func (p *proxy) options() (o rig.Options) {
	t := p.stage.t
	duration := func(value string) time.Duration {
		d, err := time.ParseDuration(value)
		p.stage.must(err)
		return d
	}
	o.LogLevel = "info"
	masters, upstream := "1-5", ""
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		switch value := p.settings[name]; name {
		case "masters":
			masters = value
		case "master_timeout":
			o.MasterTimeout = duration(value)
		case "restart_delay":
			o.RestartDelay = duration(value)
		case "max_quarantine":
			o.MaxQuarantine = duration(value)
		case "retries":
			n, err := strconv.Atoi(value)
			p.stage.must(err)
			o.RetryCount = n
		case "rules":
			o.Rules = strings.Fields(value)
			o.Learn = value == "learn"
		case "rule":
			rule, more, _ := strings.Cut(value, " ")
			o.RuleMore = map[string]string{rule: more}
		case "not":
			o.NotNew = value == "new"
		case "upstream":
			upstream = value
		case "links", "user":
		case "version":
			o.Binary = p.stage.binary(value)
		default:
			if value != "default" {
				o.More += name + ": " + value + "\n"
			}
		}
	}
	if o.Upstream = upstream; upstream == "" {
		o.Upstream = p.stage.server("upstream").URL()
	}
	for word := range strings.FieldsSeq(masters) {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		p.stage.must(err)
		to, err := strconv.Atoi(last)
		p.stage.must(err)
		for i := from; i <= to; i++ {
			o.Masters = append(o.Masters, "redis://"+p.user()+p.reaches(fmt.Sprint("m", i)))
		}
	}
	if len(o.Masters) == 0 {
		t.Fatal("no masters")
	}
	return o
}

func (p *proxy) user() string {
	if p.settings["user"] == "" {
		return ""
	}
	return p.settings["user"] + "@"
}

// reaches returns the address at which the proxy reaches a master.
func (p *proxy) reaches(master string) string {
	r := p.stage.server(master)
	if wants := p.settings["links"]; wants != "all" && !slices.Contains(strings.Fields(wants), strings.TrimPrefix(master, "m")) {
		return r.Addr()
	}
	if p.links[master] == nil {
		p.links[master] = rig.StartLink(p.stage.t, r.Addr())
	}
	return p.links[master].Addr()
}

// do is an event of this proxy, or a question to it.
func (p *proxy) do(event string) string {
	s, t := p.stage, p.stage.t
	verb, text, _ := strings.Cut(strings.TrimPrefix(event, p.name+" "), " ")
	switch verb {
	case "start:", "start":
		if text != "" || p.Proxy == nil {
			p.set(text)
			p.Proxy = rig.StartProxy(t, p.options())
			p.since = time.Now()
			break
		}
		p.Start(t)
		rig.WaitFor(t, "it is ready again", p.Ready)
		p.since = time.Now()
	case "end":
		s.judge(p.name)
		if code, err := p.Proc.Stop(rig.Patience); code != 0 || err != nil {
			t.Fatalf("%s ended with %d: %v", p.name, code, err)
		}
	case "becomes": // another version, with a restart
		p.do(p.name + " end")
		p.Binary = s.binary(text)
		p.do(p.name + " start")
	case "restarts":
		p.do(p.name + " end")
		s.goesOn(slices.DeleteFunc(slices.Clone(s.at), func(name string) bool { return name == p.name })...)
		p.do(p.name + " start")
		s.goesOn(s.at...)
	case "heals":
		p.heals()
	case "kill":
		s.judge(p.name)
		p.Proc.Kill()
	case "pause":
		p.Proc.Signal(syscall.SIGSTOP)
	case "resume":
		p.Proc.Signal(syscall.SIGCONT)
	case "reload:":
		before := maps.Clone(p.settings)
		p.set(text)
		p.Configure(t, p.options())
		result := p.Signalled(t)
		if result != "applied" {
			p.settings = before
		}
		return result
	case "configure:":
		p.set(text)
		p.Configure(t, p.options())
	case "move:":
		p.set(text)
		p.MoveKeys(t, p.options())
	case "changes": // until the next change of the masters may come
		rig.WaitFor(t, "the next change may come", func() error {
			if status := p.place("STATUS"); strings.Contains(status, "the next change of the lock masters may come at") {
				return fmt.Errorf("%s", status)
			}
			return nil
		})
	case "states", "state":
		return s.poll(func() []string { return []string{p.states(text)} })
	case "ready":
		return s.poll(func() []string {
			if p.Ready() != nil {
				return []string{"no"}
			}
			return []string{"yes"}
		})
	case "metric":
		return s.poll(func() []string { return []string{cmp.Or(p.Metric(t, s.meant(text)), "none")} })
	case "prints":
		return s.poll(func() []string { return []string{p.prints(strings.Fields(text))} })
	case "logged": // in how many lines of warnings and errors
		return s.poll(func() []string {
			n := 0
			for line := range strings.Lines(p.Proc.Log.String()) {
				if strings.Contains(line, s.meant(text)) && !strings.Contains(line, "level=INFO") {
					n++
				}
			}
			return few(n)
		})
	default:
		wanted := s.meant(strings.TrimPrefix(text, "has "))
		return s.poll(func() []string {
			if strings.Contains(p.place(verb), wanted) {
				return []string{"yes"}
			}
			return []string{"no"}
		})
	}
	return ""
}

// healPatience bounds the wait for a pass of healing. A busy machine makes passes
// incomplete, and each is repeated after a while.
const healPatience = 4 * time.Minute

// heals waits for a complete pass of healing that begins now or later.
func (p *proxy) heals() {
	began := time.Now()
	for ; ; time.Sleep(20 * time.Millisecond) {
		at, err := strconv.ParseFloat(p.Metric(p.stage.t, "redlock_heal_complete_timestamp_seconds"), 64)
		if err == nil && at >= float64(began.UnixMilli())/1000 {
			return
		}
		if time.Since(began) > healPatience {
			p.stage.t.Fatalf("no complete pass of healing began in %v:\n%s", healPatience, p.Proc.Log.Tail(20))
		}
	}
}

// states returns the states of the masters in the proxy's file, in their order, or of one of them.
func (p *proxy) states(only string) string {
	var states []string
	shown := p.Metrics(p.stage.t)
	for i := range 10 {
		name := fmt.Sprint("m", i)
		if p.stage.servers[name] == nil || only != "" && name != only {
			continue
		}
		for _, state := range rig.States {
			if strings.Contains(shown, fmt.Sprintf("\nredlock_master_state{master=%q,state=%q} 1\n", p.reaches(name), state)) {
				states = append(states, state)
			}
		}
	}
	if all := slices.Compact(slices.Clone(states)); len(all) == 1 && only == "" {
		return fmt.Sprintf("%d %s", len(states), all[0])
	}
	return strings.Join(states, " ")
}

// These differ from run to run, and so do ports.
var chance = []struct {
	what *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\dZ`), "CLOCK"},
	{regexp.MustCompile(`\d+\.\d s`), "N s"},
	{regexp.MustCompile(`("(?:id|[a-z-]+-ms|idle|age)"(?:\n\s*\d+\)| =>) \(integer\)) \d+`), "$1 N"},
	{regexp.MustCompile(`\(integer\) \d{3,}`), "(integer) N"}, // a moment, a duration, a token
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "CLIENT"},
}

// prints returns what redis-cli prints, with words for what differs.
func (p *proxy) prints(args []string) string {
	text := p.stage.readable(rig.RedisCLI(append([]string{"-p", fmt.Sprint(p.Port), "--no-raw"}, args...)...))
	for _, differs := range chance {
		text = differs.what.ReplaceAllString(text, differs.word)
	}
	return text
}

// few tells a number of lines, exactly and not. "Some lines" are some, and less than one a second.
func few(n int) []string {
	all := []string{fmt.Sprint(n, " lines")}
	if n > 0 && n <= int(rig.Patience/time.Second) {
		all = append(all, "some lines")
	}
	return all
}

// place returns what is shown at one of the places where an operator or a machine looks.
func (p *proxy) place(name string) string {
	t := p.stage.t
	switch name {
	case "log":
		return strings.ReplaceAll(p.Proc.Log.String(), `\"`, `"`)
	case "metrics":
		return p.Metrics(t)
	case "STATUS":
		return rig.RedisCLI("-p", fmt.Sprint(p.Port), "REDLOCK", "STATUS")
	case "check":
		out, err := exec.Command(p.Binary, "-config", p.Flags[1], "-check").CombinedOutput()
		return fmt.Sprintf("%s\nexit: %v", out, err)
	case "readyz", "page":
		path := map[string]string{"readyz": "/readyz", "page": "/status.json"}[name]
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d%s", p.Admin, path))
		p.stage.must(err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		p.stage.must(err)
		return fmt.Sprintf("%d %s", answer.StatusCode, body)
	}
	t.Fatalf("%s does not %s", p.name, name)
	return ""
}
