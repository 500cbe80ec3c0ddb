package events

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock"
)

// Scripts in testdata/*.txt show what a process remembers, counts and logs. It is 2000-01-01 00:00. What is
// logged and counted of masters is printed as it comes. The events are
//
//	m1 unreachable refused    a master's state with its reason, which is seen at once
//	m1 quarantined until 10m  (and then the reason)
//	unseen m1 voting          a state that nobody tells of. "other" instead: of a server that does not count
//	told m1                   somebody tells of a change
//	m1 leaves                 the masters
//	m1 forgot restarted       what an Observer hears. So does "m1 votes 1ms"
//	needed 3, reason X, changed, next change 10m, tell all
//	                          the rest of the status of the masters
//	passes 10s                while the masters are watched
//	after 10s                 while they are not
//	lines, changes, absent, all, INFO
//	                          what people are told of the masters
//	events                    the newest first
//	a granted KEY [value=V] [ttl=1s] [db=1] [took=1s]
//	                          what a command of client a meant for a key (Verdict), and how long the wait or the hold lasted
//	holder KEY [value=V] [db=1], verdicts KEY, hottest 10
//	                          what is known of keys
//	a is named b, a begins set KEY, a ends, a goes, a shows
//	                          what is known of clients
//	rules a b [waiting a]     the rules of new settings
//	counts LockWaited a 20ms  a method of Metrics
//	waits a, waited granted 1s
//	                          an acquire is held back, and the longest-held one is not any more
//	hazards unreachable m3 | rights m4 eval
//	                          those that there are now
//	metric waits              the series of metrics whose names contain this
func TestScripts(t *testing.T) {
	datatest.Play(t, "testdata/*.txt", func(t *testing.T, told *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(t, told)
			for event := range told.Events {
				s.do(event, strings.Fields(event))
			}
		})
	})
}

type script struct {
	*datatest.Script
	*Journal
	t        *testing.T
	log      proxytest.Log
	metrics  *Metrics
	registry *prometheus.Registry
	observer redlock.Observer
	status   redlock.Status
	clients  map[string]*Client
	waits    []func(string, time.Duration)
	logged   int
}

func newScript(t *testing.T, told *datatest.Script) *script {
	s := &script{Script: told, t: t, registry: prometheus.NewRegistry(), clients: map[string]*Client{}}
	s.Journal = New(slog.New(slog.NewTextHandler(&s.log, nil)))
	var err error
	if s.metrics, err = NewMetrics(s.registry, Names{Build: []string{"1.0", "abc", "go1"}, Verdicts: []string{"won", "lost"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(s.registry, Names{Build: []string{"", "", ""}}); err == nil {
		t.Error("a second set of metrics was registered")
	}
	s.observer = s.Observer(counted{s.metrics, s})
	err = s.registry.Register(Readings{
		Masters:  func() redlock.Status { return s.status },
		Upstream: func() (up, known bool) { return false, false },
		Moving:   func() []MovingRule { return nil },
		Leases:   func() LeaseCounts { return LeaseCounts{Renewals: map[string]int64{"renewed": 3}} },
		Buffered: func() int64 { return 7 },
		Shared:   func() (int, int) { return 1, 2 },
		Unruled:  func() (int, int64) { return 1, 2 },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// counted prints what the metrics are told of masters.
type counted struct {
	*Metrics
	s *script
}

func (c counted) Standing(m redlock.MasterStatus) {
	c.Metrics.Standing(m)
	c.s.Printf("counted: %s %s", m.Name, m.State)
}

func (c counted) ForgetMaster(name string) {
	c.Metrics.ForgetMaster(name)
	c.s.Printf("not counted any more: %s", name)
}

func (s *script) do(event string, words []string) {
	_, rest, _ := strings.Cut(event, " ")
	switch words[0] {
	case "needed":
		s.status.Needed, _ = strconv.Atoi(rest)
	case "reason":
		s.status.Reason = rest
	case "changed":
		s.status.Learned = time.Now()
	case "next":
		s.status.NextChange = time.Now().Add(datatest.Duration(words[2]))
	case "tell":
		s.status.TellAll = true
	case "passes": // and a moment, so that it does not end at once with a tick
		ctx, cancel := context.WithTimeout(s.t.Context(), datatest.Duration(rest)+time.Millisecond)
		s.Watch(ctx, func() redlock.Status { return s.status })
		cancel()
	case "after":
		time.Sleep(datatest.Duration(rest))
	case "unseen":
		s.turns(words[1:], &s.status.Masters)
	case "other":
		s.turns(words[1:], &s.status.Others)
	case "told":
		s.observer.Standing(redlock.MasterStatus{})
		s.observer.Standing(redlock.MasterStatus{}) // and does not block
	case "lines", "changes", "absent", "all", "INFO":
		s.says(words[0])
	case "events":
		for _, e := range s.Journal.Events() {
			s.Printf("%s %s %s", e.Kind, e.Master, e.Text)
		}
	case "holder", "verdicts", "hottest":
		s.asks(words)
	case "rules":
		rules, waiting, _ := strings.Cut(rest, "waiting ")
		s.metrics.ShowSettings(Configured{Rules: strings.Fields(rules), Waiting: strings.Fields(waiting)})
	case "counts":
		s.counts(words[1], words[2:])
	case "waits":
		s.waits = append(s.waits, s.metrics.Waits(words[1]))
	case "waited":
		s.waits[0](words[1], datatest.Duration(words[2]))
		s.waits = s.waits[1:]
	case "hazards":
		var hazards []Hazard
		for one := range strings.SplitSeq(rest, " | ") {
			w := append(strings.Fields(one), "")
			hazards = append(hazards, Hazard{Kind: w[0], Server: w[1], Detail: w[2]})
		}
		s.metrics.ShowHazards(hazards)
	case "metric":
		s.shows(rest)
	default:
		s.hears(words)
	}
	lines := s.log.String()[s.logged:]
	s.logged += len(lines)
	for line := range strings.Lines(lines) {
		_, line, _ = strings.Cut(line, " ")
		s.Printf("%s", line)
	}
}

// hears is what a master or a client does.
func (s *script) hears(words []string) {
	name, verb := words[0], words[1]
	if len(name) == 1 {
		s.client(name, verb, words[2:])
		return
	}
	switch verb {
	case "leaves":
		s.status.Masters = slices.DeleteFunc(s.status.Masters, func(m redlock.MasterStatus) bool { return m.Name == name })
	case "forgot":
		for cause := redlock.Emptied; cause <= redlock.Replaced; cause++ {
			if cause.String() == words[2] {
				s.observer.Forgot(name, cause)
			}
		}
		return
	case "votes":
		s.observer.Voted(name, redlock.Granted, datatest.Duration(words[2]), time.Now())
		return
	default:
		s.turns(words, &s.status.Masters)
	}
	s.see(s.status, time.Now())
}

// turns gives a master another state.
func (s *script) turns(words []string, among *[]redlock.MasterStatus) {
	is := redlock.MasterStatus{Name: words[0], Longest: 90 * time.Second}
	for _, state := range []redlock.MasterState{redlock.Unreachable, redlock.Starting, redlock.Quarantined, redlock.Voting, redlock.Rejected} {
		if state.String() == words[1] {
			is.State = state
		}
	}
	if words = words[2:]; len(words) > 0 && words[0] == "until" {
		is.Until, words = time.Now().Add(datatest.Duration(words[1])), words[2:]
	}
	is.Reason = strings.ReplaceAll(strings.Join(words, " "), `\r\n`, "\r\n")
	for i := range *among {
		if (*among)[i].Name == is.Name {
			(*among)[i] = is
			return
		}
	}
	*among = append(*among, is)
}

func (s *script) says(what string) {
	state := s.Masters(s.status)
	switch what {
	case "lines":
		s.Printf("%s", strings.Join(state.Lines(), "\n"))
	case "changes":
		for _, line := range state.Changes() {
			s.Printf("%s", line)
		}
	case "absent":
		s.Printf("nothing is done%s", state.Absent())
	default:
		for _, m := range state.All() {
			if what == "INFO" {
				s.Printf("%s", m.Info())
				continue
			}
			s.Printf("%s %s %q, since %s, votes take %s", m.Name, m.State, m.Reason, at(m.Since), m.VoteMost)
		}
	}
}

// at is a time of the script's day.
func at(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("15:04:05")
}

func (s *script) client(name, verb string, words []string) {
	c := s.clients[name]
	if c == nil && name != "?" {
		c = NewClient(int64(len(s.clients)+1), "10.0.0.1:"+name, time.Now())
		c.Introduce(Identity{Name: name})
		s.clients[name] = c
	}
	switch verb {
	case "is":
		c.Introduce(Identity{Name: words[1]})
	case "begins":
		c.Begin(words[0], []byte(words[1]), time.Now())
	case "ends":
		c.End()
	case "goes":
		c.Leave()
	case "shows":
		info := c.Info()
		s.Printf("%q has taken %d locks, runs %q of %q, gone %v", info.Name, info.Granted, info.Command, info.Key, info.Gone)
	default:
		e, _ := s.keyEvent(words)
		for v := Granted; v <= Failed; v++ {
			if v.String() == verb {
				e.Verdict = v
			}
		}
		e.Client = c
		if lasted, known := s.Note(e); known {
			s.Printf("lasted %s", lasted)
		}
	}
}

// keyEvent reads a key and what is said of it.
func (s *script) keyEvent(words []string) (e KeyEvent, value []byte) {
	e = KeyEvent{Key: []byte(words[0]), At: time.Now()}
	for _, word := range words[1:] {
		switch key, text, _ := strings.Cut(word, "="); key {
		case "value":
			e.Value = []byte(text)
		case "ttl":
			e.TTL = datatest.Duration(text)
		case "took":
			e.Took = datatest.Duration(text)
		case "db":
			e.DB, _ = strconv.Atoi(text)
		}
	}
	return e, e.Value
}

// asks prints what is known of keys.
func (s *script) asks(words []string) {
	switch words[0] {
	case "holder":
		e, value := s.keyEvent(words[1:])
		if h, known := s.Holder(e.DB, e.Key, value, time.Now()); known {
			s.Printf("%s since %s, gone %v", h.Client.Name, at(h.Since), h.Client.Gone)
		} else {
			s.Printf("nobody knows")
		}
	case "verdicts":
		for _, m := range s.Verdicts(0, []byte(words[1])) {
			s.Printf("%s %s", m.Client.Name, m.Verdict)
		}
	default:
		n, _ := strconv.Atoi(words[1])
		for _, k := range s.Hottest(n, time.Now(), func(_ int, key []byte) bool { return string(key) != "hidden" }) {
			s.Printf("%s of database %d: %d times", k.Key, k.DB, k.Refusals-k.Excess)
		}
	}
}

// counts calls a method of Metrics.
func (s *script) counts(method string, words []string) {
	m := reflect.ValueOf(s.metrics).MethodByName(method)
	var args []reflect.Value
	for i := range m.Type().NumIn() {
		arg := reflect.New(m.Type().In(i)).Elem()
		switch {
		case arg.Type() == reflect.TypeFor[time.Time]():
			arg.Set(reflect.ValueOf(time.Now()))
		case arg.Type() == reflect.TypeFor[time.Duration]():
			arg.SetInt(int64(datatest.Duration(words[i])))
		case arg.Kind() == reflect.String:
			arg.SetString(words[i])
		case arg.CanInt():
			n, _ := strconv.Atoi(words[i])
			arg.SetInt(int64(n))
		case arg.CanFloat():
			x, _ := strconv.ParseFloat(words[i], 64)
			arg.SetFloat(x)
		default: // the name of one of a few
			for n := uint64(0); fmt.Sprint(arg.Interface()) != words[i]; n++ {
				arg.SetUint(n)
			}
		}
		args = append(args, arg)
	}
	m.Call(args)
}

func (s *script) shows(name string) {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		series, _, _ := strings.Cut(line, "{")
		if !strings.HasPrefix(line, "#") && strings.Contains(series, name) && !strings.Contains(series, "_bucket") {
			s.Printf("%s", line)
		}
	}
}
