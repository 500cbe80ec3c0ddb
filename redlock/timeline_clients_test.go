package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/toymaster"
)

// set sets what the processes that start next are configured with.
func (s *stage) set(words []string) {
	s.cfg = timelineConfig()
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "retry":
			count, delay, _ := strings.Cut(value, "/")
			s.cfg.Retry = Retry{Count: atoi(count), Delay: datatest.Duration(delay)}
		case "old": // the set is not said to be new
			s.cfg.New = false
		case "timeout":
			s.cfg.MasterTimeout = datatest.Duration(value)
		case "restart":
			s.cfg.RestartDelay = datatest.Duration(value)
		case "quarantine":
			s.cfg.MaxQuarantine = datatest.Duration(value)
		case "heal":
			s.cfg.Heal = Heal{Every: 20 * second, Rate: 1000, Most: 1 << 10, Covers: func(_ int, k []byte) bool { return strings.HasPrefix(string(k), value) }}
		case "embedded":
			s.embedded = true
		default:
			s.t.Fatalf("no setting %q", word)
		}
	}
}

// process returns a process by its name, or nil.
func (s *stage) process(name string) *process {
	for _, p := range s.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// start starts a process with the named servers, or all masters, and waits until all vote. How it judges the masters is
// printed if not all of them do in time.
func (s *stage) start(name string, list []string) {
	p := s.begin(name, list, nil)
	for deadline := time.Now().Add(3 * second); !p.allVote() && time.Now().Before(deadline); {
		s.sleep(time.Millisecond)
	}
	if p.allVote() {
		p.told = p.judges()
	}
}

// begin starts a process.
func (s *stage) begin(name string, list []string, delays []time.Duration) *process {
	p := &process{name: name, links: map[string]*toymaster.Link{}}
	cfg := s.cfg
	cfg.Loop, cfg.Observer = s.loop, s.observer
	cfg.slept = func() time.Duration { return s.slept }
	cfg.Log = slog.New(slog.NewTextHandler(&s.observer.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	if len(list) == 0 {
		for _, m := range s.masters {
			list = append(list, m.Name)
		}
	}
	for i, m := range list {
		cfg.Masters = append(cfg.Masters, s.master(p, m, i))
		if i < len(delays) {
			p.links[m].SetDelay(delays[i], 0)
		}
	}
	l, err := New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Locker = l
	s.processes = append(s.processes, p)
	if name == "p" {
		s.locker = l
		for _, m := range list {
			s.links = append(s.links, p.links[m])
		}
	}
	return p
}

// master is a process's setting for a server: its name, or NAME=SERVER.
func (s *stage) master(p *process, word string, place int) Master {
	name, at, other := strings.Cut(word, "=")
	if !other {
		at = name
	}
	m := s.server(at)
	k := p.links[name]
	if k == nil {
		k = toymaster.NewLink(p.name+"-"+name, m, uint64(place), s.World)
		p.links[name] = k
	}
	return Master{Name: name, Embedded: s.embedded, Dial: func(ctx context.Context) (net.Conn, error) { return k.Dial(ctx) }}
}

// close ends a process.
func (s *stage) close(p *process) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	p.Close(gone)
	s.processes = slices.DeleteFunc(slices.Clone(s.processes), func(other *process) bool { return other == p })
}

// judges tells how a process judges the masters.
func (p *process) judges() string {
	var states []roster.State
	names := map[roster.State]string{}
	for _, m := range p.Status().Masters {
		if !slices.Contains(states, m.State) {
			states = append(states, m.State)
		}
		names[m.State] += m.Name + " "
	}
	if len(states) == 1 {
		return "all " + states[0].String()
	}
	var words []string
	for _, state := range states {
		words = append(words, names[state]+state.String())
	}
	return strings.Join(words, ", ")
}

// A request is what a client asks of a process. Its options stand at the end of the line:
//
//	in 3             the database
//	of lock:else     another key
//	for 10s          the TTL
//	gone [after 5ms] the client goes away
//	beside           the story goes on meanwhile
type request struct {
	db     int
	key    []byte
	ttl    time.Duration
	ctx    context.Context
	beside bool
	words  []string
}

func (s *stage) request(words []string) *request {
	r := &request{key: []byte(key), ctx: context.Background(), words: words}
	for len(r.words) > 1 {
		n := len(r.words)
		switch last, word := r.words[n-1], r.words[n-2]; {
		case last == "beside":
			r.beside, r.words = true, r.words[:n-1]
		case last == "gone":
			ctx, leave := context.WithCancel(r.ctx)
			leave()
			r.ctx, r.words = ctx, r.words[:n-1]
		case word == "after" && r.words[n-3] == "gone":
			r.ctx, r.words = s.goneAfter(datatest.Duration(last)), r.words[:n-3]
		case word == "in":
			r.db, r.words = atoi(last), r.words[:n-2]
		case word == "of":
			r.key, r.words = []byte(last), r.words[:n-2]
		case word == "for":
			r.ttl, r.words = datatest.Duration(last), r.words[:n-2]
		default:
			return r
		}
	}
	return r
}

// byProcess plays what a process or its client does.
func (s *stage) byProcess(name string, words []string) string {
	p := s.process(name)
	switch {
	case words[0] == "starts": // and waits until all masters vote
		s.start(name, words[1:])
		return ""
	case words[0] == "dials": // with the delays of its links, if there are any
		var delays []time.Duration
		var list []string
		for _, word := range words[1:] {
			if d, err := time.ParseDuration(word); err == nil {
				delays = append(delays, d)
			} else {
				list = append(list, word)
			}
		}
		s.begin(name, list, delays)
		return ""
	case p == nil:
		s.t.Fatalf("no process %q", name)
	case words[0] == "closes":
		s.close(p)
		return ""
	case words[0] == "listens":
		s.listeners = append(s.listeners, s.listenTo(p.Locker, words[2]))
		return ""
	}
	r := s.request(words)
	ask := func() string {
		began := time.Now()
		r.ctx = loop.NewContext(r.ctx, s.Running()) // whose pauses are the World's
		text, details := s.ask(p, r)
		return fmt.Sprintf("%s after %v%s\n", strings.Replace(text, "noquorum", "no quorum", 1), time.Since(began), readable(details))
	}
	if !r.beside {
		return ask()
	}
	s.beside.Go(func() { s.ended = append(s.ended, ending{name + " " + strings.Join(r.words, " "), ask()}) })
	s.Settle()
	return ""
}

// ask asks a process, and returns the verdict and the rest of the outcome.
func (s *stage) ask(p *process, r *request) (verdict, details string) {
	word := func(i int) string {
		if i < len(r.words) {
			return r.words[i]
		}
		return ""
	}
	has := func(option string) bool { return slices.Contains(r.words, option) }
	var o Outcome
	switch r.words[0] {
	case "acquires":
		o = p.Acquire(r.ctx, AcquireRequest{DB: r.db, Key: r.key, Value: []byte(meant(word(1))), TTL: r.ttl, Get: has("GET")})
	case "releases": // [VALUE [until D]] [GET]
		q := ReleaseRequest{DB: r.db, Key: r.key, Get: has("GET")}
		if v := word(1); v != "" && v != "GET" {
			q.Value = []byte(meant(v))
		}
		if has("until") {
			q.Until = time.Now().Add(datatest.Duration(word(3)))
		}
		o = p.Release(r.ctx, q)
	case "extends": // [CONDITION]
		o = p.Extend(r.ctx, ExtendRequest{DB: r.db, Key: r.key, TTL: r.ttl, Condition: word(1)})
	case "persists":
		o = p.Extend(r.ctx, ExtendRequest{DB: r.db, Key: r.key, Persist: true})
	case "renews":
		o = p.Renew(r.ctx, RenewRequest{DB: r.db, Key: r.key, Holder: []byte(meant(word(1))), TTL: r.ttl})
	case "GET":
		o = p.Get(r.ctx, r.db, r.key)
	case "EXISTS":
		o = p.Exists(r.ctx, r.db, r.key)
	case "PTTL":
		o = p.TTL(r.ctx, TTLRequest{DB: r.db, Key: r.key, Name: "PTTL"})
		return o.Verdict.String(), fmt.Sprint(": ", o.Number)
	case "token":
		o = p.Token(r.ctx, TokenRequest{DB: r.db, Key: r.key, Value: []byte(meant(word(1)))})
	case "cycles": // acquires and releases
		o = p.Acquire(r.ctx, AcquireRequest{DB: r.db, Key: r.key, Value: []byte(tokenA), TTL: 10 * second})
		if o.Verdict == Won {
			o = p.Release(r.ctx, ReleaseRequest{DB: r.db, Key: r.key})
		}
	case "watches":
		watch, o := p.Watch(r.ctx, r.db, [][]byte{r.key})
		if p.watch = []*Watch{watch}; watch == nil {
			return o.Verdict.String(), outcomeText(o) + ", and there is nothing to guard a transaction with"
		}
		return o.Verdict.String(), ""
	case "runs", "transacts":
		o = p.Run(r.ctx, s.runRequest(p, r))
	case "mends":
		p.mender.Mend(r.db, string(r.key))
		return "asked", ""
	case "reloads":
		return s.reload(p, r)
	default:
		s.t.Fatalf("no process %q", r.words[0])
	}
	return o.Verdict.String(), outcomeText(o)
}

// reload gives a process the servers by their names.
func (s *stage) reload(p *process, r *request) (verdict, details string) {
	cfg := s.cfg
	cfg.Loop, cfg.Observer, cfg.Log = s.loop, p.settings().Observer, p.settings().Log
	for i, name := range r.words[1:] {
		cfg.Masters = append(cfg.Masters, s.master(p, name, i))
	}
	if err := p.Reload(r.ctx, cfg); err != nil {
		return "refused", ": " + err.Error()
	}
	return "reloaded", ""
}

// linkNames returns the links that a script means by p-m1 or p-all.
func (s *stage) linkNames(word string) []*toymaster.Link {
	of, at, _ := strings.Cut(word, "-")
	p := s.process(of)
	if p == nil {
		s.t.Fatalf("no link %q", word)
	}
	if at == "all" {
		var all []*toymaster.Link
		for _, name := range slices.Sorted(maps.Keys(p.links)) {
			all = append(all, p.links[name])
		}
		return all
	}
	return []*toymaster.Link{p.links[at]}
}
