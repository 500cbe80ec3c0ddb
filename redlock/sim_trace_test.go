package redlock

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/integration/fault"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/stream"
	"redlock-proxy/redlock/toymaster"
)

// A simTrace is a run of the simulation as spec/Trace.tla reads it. What masters executed and what was
// said to clients is a step. What the program thinks of itself is none: the specification must
// come to the same result alone.
//
// Its worlds have what the specification has: one lock, clocks without drift, no extensions. Proxies do not
// crash, because a young one may let a master join anew.
type simTrace struct {
	began   time.Time
	steps   []*traceStep
	tokens  map[string]string          // a token's name in the specification
	ballots map[string]*traceBallot    // each token's latest
	sent    map[string][]traceSent     // by token and master, what was not executed
	marked  map[string]int64           // since when a master remembers; 0: it has no marker
	held    map[string]toymaster.Entry // each master's lock
	beyond  string                     // why the specification has no such history
	wrong   []string
	over    bool
}

// A traceStep is one of spec/Trace.tla, which says what its words are.
type traceStep struct {
	at     time.Time
	kind   string
	token  string
	master string
	sent   map[string]bool // the masters that were asked
	asks   *traceStep      // which question a master executed
	lost   *traceStep      // which question it did not execute before this
	number int64
}

type traceBallot struct {
	asks   *traceStep
	over   bool // it was won or lost
	undone bool // by its process
	told   bool // the client knows
}

// A traceSent is a question or an undo on a connection.
type traceSent struct {
	over *toymaster.Conn
	asks *traceStep // nil: it is an undo
}

const (
	traceLock    = "lock:0.0"
	traceTTL     = 400 * time.Millisecond
	traceMasters = 3
)

// begin makes the world of a seed one that the specification knows.
func (x *simTrace) begin(s *simulation) {
	*x = simTrace{began: s.began, tokens: map[string]string{}, ballots: map[string]*traceBallot{}, sent: map[string][]traceSent{}, marked: map[string]int64{}, held: map[string]toymaster.Entry{}}
	s.plan.keys = []simKey{{name: "lock:0", style: randomTokens, ttl: traceTTL, longest: traceTTL, proxy: -1, round: new(int)}}
	s.plan.masters, s.plan.retry, s.plan.duration = traceMasters, Retry{}, 3*time.Second
	s.plan.faults = slices.DeleteFunc(slices.Clone(simFaults), func(f simFault) bool {
		return f.name == fault.Kill+fault.Proxy || f.name == fault.Jump
	})
}

func (x *simTrace) watch(m *toymaster.Master) {
	m.Clock.Rate = 1
	m.Watch = func(e toymaster.Execution) { x.executed(m, e) }
	forgets := func(kind string) {
		if _, begun := x.marked[m.Name]; !begun && kind == "is flushed" {
			x.beyond = m.Name + " is flushed before its set has begun"
		} else if begun {
			x.add(traceStep{kind: kind, master: m.Name})
		}
	}
	m.Reloaded = func() { forgets("restarts") }
	m.Flushed = func() {
		forgets("is flushed")
		x.held[m.Name] = toymaster.Entry{}
	}
}

// end is the end of the trace. What follows in the simulation is not part of it.
func (x *simTrace) end() {
	if x != nil {
		x.over = true
	}
}

func (x *simTrace) add(s traceStep) *traceStep {
	if s.at = time.Now(); !x.over {
		x.steps = append(x.steps, &s)
	}
	return &s
}

func (x *simTrace) failed(format string, args ...any) {
	x.wrong = append(x.wrong, fmt.Sprintf(format, args...))
}

// asks notes that a client asks for the lock, and returns what notes the outcome.
func (x *simTrace) asks(token string) func(Outcome) {
	if x == nil {
		return func(Outcome) {}
	}
	x.giveUp(x.ballots[token])
	delete(x.ballots, token)
	return func(o Outcome) {
		b := x.ballots[token]
		if b != nil {
			b.told = true
		}
		if b == nil || o.Verdict != Won {
			x.giveUp(b)
			return
		}
		if b.asks.at.After(o.Since) {
			b.asks.at = o.Since // the validity counts from then on
		}
		b.over = true
		x.add(traceStep{kind: "wins", token: b.asks.token})
	}
}

// giveUp notes the end of a ballot that was not won.
func (x *simTrace) giveUp(b *traceBallot) {
	if b != nil && !b.over {
		b.over = true
		x.add(traceStep{kind: "gives up", token: b.asks.token})
	}
}

// sends notes what is sent to a master. An undo is the end of its ballot, and so is a second question. Some
// questions are sent after their ballot has ended.
func (x *simTrace) sends(c *toymaster.Conn, bytes []byte) {
	master := c.Link.Master.Name
	for args, size := toymaster.ParseFrame(bytes); size > 0; args, size = toymaster.ParseFrame(bytes) {
		bytes = bytes[size:]
		sets, releases, token := x.isAbout(args)
		if !sets && !releases {
			continue
		}
		b := x.ballots[token]
		switch {
		case releases && b != nil && b.asks.sent[master]:
			x.giveUp(b)
			b.undone = true
		case sets && b != nil && !b.asks.sent[master] && (!b.undone || b.told):
			b.asks.sent[master] = true
		case sets:
			x.giveUp(b)
			if x.tokens[token] == "" {
				x.tokens[token] = fmt.Sprintf("v%d", len(x.tokens)+1)
			}
			ttl, _ := strconv.ParseInt(string(args[5]), 10, 64)
			b = &traceBallot{asks: x.add(traceStep{kind: "asks", token: x.tokens[token], number: ttl + 1, sent: map[string]bool{master: true}})}
			x.ballots[token] = b
		}
		s := traceSent{over: c}
		if sets {
			s.asks = b.asks
		}
		x.sent[token+master] = append(x.sent[token+master], s)
	}
}

// isAbout tells whether a command takes or releases the lock, and for which token.
func (x *simTrace) isAbout(args [][]byte) (sets, releases bool, token string) {
	if len(args) < 5 {
		return false, false, ""
	}
	switch {
	case string(args[0]) == "SET" && string(args[1]) == traceLock:
		return true, false, string(args[2])
	case string(args[1]) == stream.ReleaseScript && string(args[3]) == traceLock:
		return false, true, string(args[4])
	}
	return false, false, ""
}

func (x *simTrace) releases(token string) {
	if x != nil {
		x.add(traceStep{kind: "releases", token: x.tokens[token]})
	}
}

func traceMaster(i int) string { return fmt.Sprintf("m%d", i+1) }

// executed notes what a master has executed. The master's mutex is held.
func (x *simTrace) executed(m *toymaster.Master, e toymaster.Execution) {
	if x.over {
		return
	}
	record, _ := m.Find(0, []byte(marker.Key))
	x.markerIs(m.Name, record.Value)
	before := x.held[m.Name]
	lock, _ := m.Find(0, []byte(traceLock))
	x.held[m.Name] = lock
	sets, releases, token := x.isAbout(e.Args)
	step := traceStep{token: x.tokens[token], master: m.Name}
	switch reply := string(e.Reply); {
	case sets && reply == "+OK\r\n":
		step.kind = "is granted"
	case sets && reply == "$-1\r\n":
		step.kind = "is refused"
	case sets && e.Reply[0] == '-':
		step.kind = "is rejected"
	case releases && reply == ":1\r\n":
		step.kind = "deletes"
	case releases && reply == ":0\r\n" && lock.Value == token:
		step.kind = "spares" // a later lock of the same token
	case releases && reply == ":0\r\n":
		step.kind = "finds nothing"
	default:
		if lock != before && (lock.Value != "" || before.Expires > m.Millis()) {
			x.failed("on %s the lock %q became %q by %s", m.Name, before.Value, lock.Value, summary(e.Args))
		}
		return
	}
	if step.token == "" {
		x.failed("%s executed %s", m.Name, summary(e.Args))
	}
	way := token + m.Name
	sent := x.sent[way]
	i := slices.IndexFunc(sent, func(o traceSent) bool { return o.over == e.Conn && (o.asks != nil) == sets })
	if i < 0 {
		x.failed("nobody sent what %s executed: %s", m.Name, summary(e.Args))
		return
	}
	step.asks = sent[i].asks
	for _, before := range sent[:i] {
		if releases && before.asks != nil {
			step.lost = before.asks
		}
	}
	x.sent[way] = slices.Delete(sent, i, i+1)
	x.add(step)
}

// markerIs notes that a master has begun to remember anew. It has, when the simulation begins.
func (x *simTrace) markerIs(master, text string) {
	m, ok := marker.Parse(text)
	before, known := x.marked[master]
	if !ok || m.Since == before && known {
		return
	}
	if x.marked[master] = m.Since; known {
		x.add(traceStep{kind: "is marked", master: master, number: m.Quarantine.Milliseconds()})
	}
}

// text returns the steps, and the time between them, as TLA+.
func (x *simTrace) text() string {
	slices.SortStableFunc(x.steps, func(a, b *traceStep) int { return a.at.Compare(b.at) })
	var lines []string
	line := func(kind, token, master string, masters map[string]bool, number int64) {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(masters)) {
			names = append(names, strconv.Quote(name))
		}
		lines = append(lines, fmt.Sprintf("<<%q, %q, %q, {%s}, %d>>", kind, token, master, strings.Join(names, ", "), number))
	}
	told, asking := int64(0), map[string]*traceStep{}
	for _, s := range x.steps {
		if now := s.at.Sub(x.began).Milliseconds(); now > told {
			line("time passes", "", "", nil, now-told)
			told = now
		}
		asked := asking[s.token]
		switch {
		case s.kind == "asks":
			asking[s.token] = s
			unsent := map[string]bool{}
			for i := range traceMasters {
				if name := traceMaster(i); !s.sent[name] {
					unsent[name] = true
				}
			}
			line("asks anew", s.token, "", s.sent, 0)
			line(s.kind, s.token, s.master, nil, s.number)
			line("does not reach", s.token, "", unsent, 0)
			continue
		case s.asks != nil && s.asks != asked && asked.sent[s.master]:
			if s.kind == "is granted" {
				x.beyond = fmt.Sprintf("%s grants an earlier ballot's question", s.master)
			}
			continue // a refusal changes nothing
		case s.lost != nil && s.lost == asked:
			line("has lost", s.token, s.master, nil, 0)
		}
		line(s.kind, s.token, s.master, nil, s.number)
	}
	return "<<" + strings.Join(lines, ",\n") + ">>"
}
