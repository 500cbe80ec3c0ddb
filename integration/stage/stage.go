// Package stage plays scripts over real servers, proxies and clients. A script is a list of the steps that an operator goes
// through, and of what goes wrong, and what must be seen of it. Package datatest has the form. An event is one line:
//
//	servers WORDS                 words of the command line of masters that start later
//	p start: SETTINGS             a proxy, p or q, with settings: "masters 1-3; restart_delay 4s" (options in proxies.go)
//	p start | end | kill          again, with its file as it is; SIGTERM, after which it must end well; SIGKILL
//	p becomes VERSION             a restart as another version: earlier (proxies.go) or current
//	p reload: SETTINGS            changes of the settings, by SIGHUP; or "p move: ...", by -reload -move-keys; or
//	                              "p configure: ...", only in the file
//	m1 m2 VERB, upstream VERB     start, end, kill, forget, flush, pause, resume, cut (integration/fault has the words)
//	m1 disk, full, room           before it starts: a small disk of its own; its disk is full, and has room again
//	m1 unsaved                    its disk is gone, and it cannot save
//	m1 restarts, p restarts       as the handbook says: it ends, is seen to be away, and starts; then it votes again, or is ready;
//	                              and the work goes on before and after
//	p heals                       a pass of healing that begins now is complete
//	p changes                     the number of masters may be changed again
//	m1: COMMAND, upstream: ...    a command at the server itself
//	p-m1 VERB                     links of a proxy with the setting links, p-all for all: cut, mute, deaf (answers are lost), slow D, heal
//	a at q, RESP3                 a client, of p and with RESP2 if this is not said
//	a: COMMAND | COMMAND          its commands, and below it the replies
//	a tries: COMMAND              again and again, until the reply is the one below
//	a sends: COMMAND              without waiting for the reply
//	a counts: COMMAND             "more", if the number in its reply is larger than the one before
//	a and plain: COMMAND          at the server plain, too, which must answer the same
//	a hears, a hears 2            what comes to it, one value a line, so many; END if the connection ends
//	a leaves                      it closes its connection
//	work at p q, VARIANTS         clients start to lock all the time (package work)
//	work goes on at p             several locks are taken there from now on
//	work ends                     no two clients held a lock, and none heard an error, but while a proxy was ended
//	N times EVENT, then EVENT     # is the round, from 1 on; what comes of it must be the same each time
//	sleep D
//
// and questions, which are asked until they are answered as below them:
//
//	held KEY                      by which masters: nobody, VALUE by a quorum, VALUE by all
//	values KEY                    on each master
//	markers                       the version of the marker on each master
//	alike KEYS                    yes, if all masters have what the server plain has
//	p states, p state m6          how the proxy judges its masters, or one
//	p ready                       whether /readyz says so
//	p metric SERIES               a value of /metrics; {m1} stands for its address
//	p prints -2 COMMAND           what redis-cli prints in RESP2, with words for what differs from run to run
//	p logged TEXT                 in how many warnings and errors of its log: some lines, if in less than one a second
//	p PLACE has TEXT              yes or no; a place is log, readyz, metrics, page, STATUS, check
//
// A number of masters is not asked for: each starts when it is named. An event that waits does so for rig.Patience.
package stage

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/integration/rig"
	"redlock-proxy/integration/work"
)

// Play plays the scripts in the files that match pattern, all at once.
func Play(t *testing.T, pattern string) {
	datatest.Play(t, pattern, func(t *testing.T, script *datatest.Script) {
		t.Parallel()
		s := &stage{t: t, script: script, cluster: &rig.Cluster{}, servers: map[string]*rig.Server{}, proxies: map[string]*proxy{}, clients: map[string]*rig.Wire{}, counted: map[string]int{}, binaries: map[string]string{}}
		for event := range script.Events {
			if text := s.do(event); text != "" {
				script.Printf("%s", text)
			}
		}
	})
}

// A stage is what a script has started.
type stage struct {
	t        *testing.T
	script   *datatest.Script
	config   []string // of masters that start later
	cluster  *rig.Cluster
	servers  map[string]*rig.Server
	proxies  map[string]*proxy
	clients  map[string]*rig.Wire
	counted  map[string]int    // by client
	binaries map[string]string // of other versions
	repeats  bool
	work     *work.Work
	at       []string // the proxies at which work is done
}

var (
	manyTimes  = regexp.MustCompile(`^(\d+) times (.*)$`)
	serverName = regexp.MustCompile(`^(m\d|upstream|plain)$`)
	linkName   = regexp.MustCompile(`^([pq])-(m\d|all)$`)
)

// do lets an event happen and returns what came of it.
func (s *stage) do(event string) string {
	if many := manyTimes.FindStringSubmatch(event); many != nil {
		return s.repeat(many[1], many[2])
	}
	subject, text, isCommand := strings.Cut(event, ": ")
	words := strings.Fields(event)
	switch first := strings.TrimSuffix(words[0], ":"); {
	case first == "servers":
		s.config = words[1:]
	case first == "sleep":
		d, err := time.ParseDuration(words[1])
		s.must(err)
		time.Sleep(d)
	case first == "work":
		return s.doWork(words[1:])
	case first == "held":
		return s.held(words[1])
	case first == "markers":
		return s.poll(func() (answer []string) { return []string{s.markers()} })
	case first == "alike":
		return s.poll(func() []string { return []string{s.alike(words[1:])} })
	case first == "values":
		return s.poll(func() []string { return []string{strings.Join(s.values(words[1]), " ")} })
	case serverName.MatchString(first) && isCommand:
		return s.command(strings.Fields(subject), text)
	case serverName.MatchString(first) && words[1] == "restarts":
		s.restartServer(s.server(first), first)
	case serverName.MatchString(first):
		s.strike(words)
	case linkName.MatchString(first):
		s.link(words)
	case first == "p" || first == "q":
		return s.proxy(first).do(event)
	default:
		return s.client(first, event)
	}
	return ""
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// repeat returns what came of an event each time.
func (s *stage) repeat(times, event string) (came string) {
	n, err := strconv.Atoi(times)
	s.must(err)
	s.repeats = true
	defer func() { s.repeats = false }()
	for i := 1; i <= n; i++ {
		again := ""
		for step := range strings.SplitSeq(event, ", then ") {
			if text := s.do(strings.ReplaceAll(step, "#", strconv.Itoa(i))); text != "" {
				again += regexp.MustCompile(`([a-z:-])`+strconv.Itoa(i)+`\b`).ReplaceAllString(text, "$1#") + "\n"
			}
		}
		again = strings.TrimSuffix(again, "\n")
		if i > 1 && again != came {
			s.t.Errorf("round %d of %s: it comes out as\n%s\nand before as\n%s", i, event, again, came)
		}
		came = again
	}
	return came
}

// poll asks until one of the answers is what the script has recorded, and returns that one. If none becomes so, it
// returns the first.
func (s *stage) poll(ask func() []string) (answer string) {
	recorded := strings.Join(s.script.Recorded(), "\n")
	lines := []string{recorded}
	if s.repeats { // then each line may be of another event
		lines = s.script.Recorded()
	}
	patience := rig.Patience
	if datatest.Rewriting() {
		patience /= 4
	}
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		answers := ask()
		for _, answer := range answers {
			if slices.Contains(lines, answer) {
				return answer
			}
		}
		if time.Now().After(until) || datatest.Rewriting() && recorded == "" {
			return answers[0]
		}
	}
}

// readable puts the names of servers in place of their addresses.
func (s *stage) readable(text string) string {
	for name, server := range s.servers {
		text = strings.ReplaceAll(text, server.Addr(), name)
	}
	return text
}

// meant puts the addresses of masters in place of {m1}.
func (s *stage) meant(text string) string {
	return regexp.MustCompile(`\{(m\d|upstream)\}`).ReplaceAllStringFunc(text, func(name string) string {
		return s.server(strings.Trim(name, "{}")).Addr()
	})
}

// doWork starts the work, waits for it, or judges it.
func (s *stage) doWork(words []string) string {
	switch text := strings.Join(words, " "); {
	case words[0] == "at":
		places, variants, _ := strings.Cut(strings.TrimPrefix(text, "at "), ", ")
		s.at = strings.Fields(places)
		options := work.Options{}
		for _, name := range s.at {
			options.At = append(options.At, s.proxy(name).Addr())
		}
		for variant := range strings.SplitSeq(variants, ", ") {
			s.vary(&options, variant)
		}
		s.work = work.Start(s.t, options)
	case strings.HasPrefix(text, "goes on at "):
		s.goesOn(words[3:]...)
	case text == "ends":
		for _, name := range s.at {
			if s.proxy(name).Proc.Running() {
				s.judge(name)
			}
		}
		s.work.Check(s.t, "") // errors are judged already
	default:
		s.t.Fatal("work ", text)
	}
	return ""
}

// judge fails the test if clients of a proxy heard errors since it started.
func (s *stage) judge(name string) {
	s.t.Helper()
	if s.work == nil || !slices.Contains(s.at, name) {
		return
	}
	heard := slices.DeleteFunc(s.work.Failures(slices.Index(s.at, name)), func(f work.Failure) bool { return f.When.Before(s.proxy(name).since) })
	s.work.Heard(s.t, heard)
}

// goesOn waits until several locks were taken through these proxies.
func (s *stage) goesOn(names ...string) {
	s.t.Helper()
	for _, name := range names {
		if s.work != nil && slices.Contains(s.at, name) {
			s.work.GoesOn(s.t, slices.Index(s.at, name))
		}
	}
}

func (s *stage) vary(options *work.Options, variant string) {
	words := strings.Fields(variant)
	switch {
	case variant == "":
	case variant == "all styles":
		options.Styles, options.Clients = work.Styles, 2
	case variant == "sessions":
		options.Sessions = true
	case variant == "careless":
		options.Careless = true
	case strings.HasSuffix(variant, " clients"):
		n, err := strconv.Atoi(words[0])
		s.must(err)
		options.Clients = n
	case words[0] == "keepers":
		n, err := strconv.Atoi(words[1])
		s.must(err)
		options.Keepers = n
	case words[0] == "leases":
		d, err := time.ParseDuration(words[1])
		s.must(err)
		options.Longest = d
	default:
		s.t.Fatal("work of the variant ", variant)
	}
}

// say makes a reply one line.
func say(raw []byte) string {
	v, _ := rig.ParseValue(raw)
	return sayValue(v, string(raw))
}

func sayValue(v rig.Value, raw string) string {
	switch v.Kind {
	case '-':
		code, _, _ := strings.Cut(v.Text, " ") // what it says is tested where it is said
		return "-" + code
	case '_':
		return "nil"
	case '$', '=':
		if v.Text == "-1" && strings.HasPrefix(raw, "$-1") {
			return "nil"
		}
		return fmt.Sprintf("%q", v.Text)
	case '*', '~', '>', '%':
		if v.Text == "-1" {
			return "nil"
		}
		var items []string
		for _, item := range v.Items {
			items = append(items, sayValue(item, ""))
		}
		text := "[" + strings.Join(items, " ") + "]"
		if v.Kind == '>' {
			text = ">" + text
		}
		return text
	}
	return v.Text
}
