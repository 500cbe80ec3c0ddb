package redlock

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/toymaster"
)

// TestTimelines plays testdata/timelines/*.txt in virtual time. A script is a story in events, one a line:
//
//	masters WORDS             new masters, one for each word of timeline.play, and the process p
//	servers N                 N masters that no process has seen
//	settings NAME=VALUE ...   of the processes that start next (set)
//	now WORDS                 what the masters do from now on
//	hold VALUES [for TTL]     what they hold under the key
//	P VERB ..., S VERB ...    what a process or its clients do (byProcess), or a subscriber (bySubscriber)
//	m1 m2 VERB, all VERB      what happens to masters (atMasters)
//	p-m1 VERB, p-all VERB     what happens to links of a process (atLinks)
//	after D EVENT             an event at masters or links in the middle of the next ones
//	N times every D EVENT     the same again and again: each verdict is told once
//	suspend D                 the machine of the processes sleeps, and its kernel knows that
//	sleep D, settle, wait     lets time pass, lets all happen that happens at this moment, waits for what goes on beside
//	sleep until m4 ...        holds A, holds nothing, heard EXEC 2
//	from here                 what masters were told so far is not asked about
//	heard, ttls, status, ...  asks what is not told by itself (answers)
//
// Below an event stands what came of it, and what changed meanwhile: the values that the masters hold, how a
// process judges masters, what subscribers heard, and the ends of what was begun beside.
func TestTimelines(t *testing.T) {
	datatest.Play(t, "testdata/timelines/*.txt", func(t *testing.T, script *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			w := newTimeline(t)
			defer w.Close()
			w.Run(func() {
				s := &stage{timeline: w}
				s.reset()
				defer func() { s.reset() }()
				for event := range script.Events {
					text := s.do(event)
					if text += s.changed(); text != "" {
						script.Printf("%s", text)
					}
				}
			})
		})
	})
}

// A stage is where a script plays.
type stage struct {
	*timeline
	cfg       Config // of the processes that start next
	servers   map[string]*toymaster.Master
	processes []*process
	listeners []*listenerLog
	beside    *crew
	ended     []ending // what was begun beside and has ended, until it is told
	heardTo   int      // the executions that heard has told
	heardAt   time.Time
	values    string                                        // that were told last
	kept      map[string]map[int]map[string]toymaster.Entry // by server: what it has when it becomes a master again
	observer  *recorder
	slept     time.Duration
	marker    string // that a master had
}

// An ending is the end of what was begun beside.
type ending struct{ what, how string }

// A process is a Locker and its links.
type process struct {
	*Locker
	name  string
	links map[string]*toymaster.Link
	told  string // how it judged the masters when that was told last
	watch []*Watch
}

// reset ends all processes, and begins with none.
func (s *stage) reset() {
	if s.beside != nil {
		s.beside.Wait()
	}
	for _, p := range s.processes {
		s.close(p)
	}
	s.masters, s.links, s.processes, s.listeners, s.ended = nil, nil, nil, nil, nil
	s.servers, s.beside, s.values = map[string]*toymaster.Master{}, s.crew(), ""
	s.log, s.heardTo, s.heardAt = nil, 0, time.Now()
	s.observer, s.kept = newRecorder(), map[string]map[int]map[string]toymaster.Entry{}
	if s.cfg.MasterTimeout == 0 {
		s.cfg = timelineConfig()
	}
}

// do plays an event, and returns what came of it.
func (s *stage) do(event string) string {
	defer func() {
		if reason := recover(); reason != nil {
			panic(fmt.Sprintf("%s: %v", event, reason))
		}
	}()
	words := strings.Fields(event)
	switch verb, rest := words[0], words[1:]; verb {
	case "settings":
		s.set(rest)
	case "masters":
		s.reset()
		s.found(len(rest))
		s.start("p", nil)
		s.log, s.heardAt = nil, time.Now()
		clear(s.observer.states)
		s.play(strings.Join(rest, " "))
		s.values, s.processes[0].told = s.held(), s.processes[0].judges() // the event's words tell that
	case "servers":
		s.reset()
		s.found(atoi(rest[0]))
	case "now":
		s.play(strings.Join(rest, " "))
	case "hold":
		values, ttl := cutTTL(rest)
		s.put(strings.Join(values, " "), ttl)
		s.values = s.held()
	case "sleep":
		if rest[0] == "until" {
			s.sleepUntil(rest[1:])
		} else {
			s.elapse(datatest.Duration(rest[0]))
		}
	case "from": // here: heard tells only what comes from now on
		s.heardTo, s.heardAt = len(s.log), time.Now()
	case "settle":
		s.Settle()
	case "wait":
		s.beside.Wait()
	case "suspend": // the machine of the processes, whose kernel knows that
		s.slept += datatest.Duration(rest[0])
		for _, m := range s.masters {
			m.Jump(datatest.Duration(rest[0]))
		}
	case "after":
		s.After(datatest.Duration(rest[0]), func() { s.do(strings.Join(rest[1:], " ")) })
	default:
		return s.doNamed(words)
	}
	return ""
}

// doNamed plays an event whose first word is a name, or a question.
func (s *stage) doNamed(words []string) string {
	name, rest := words[0], words[1:]
	switch i := slices.IndexFunc(s.listeners, func(x *listenerLog) bool { return x.name == name }); {
	case i >= 0:
		return s.bySubscriber(s.listeners[i], rest)
	case len(rest) > 3 && rest[0] == "times":
		return s.repeat(atoi(name), datatest.Duration(rest[2]), strings.Join(rest[3:], " "))
	case strings.Contains(name, "-"):
		s.atLinks(words)
		return ""
	case s.isServer(name):
		s.atMasters(words)
		return ""
	}
	if answer, isQuestion := s.answer(name, rest); isQuestion {
		return answer
	}
	return s.byProcess(name, rest)
}

// found makes masters that no process has seen.
func (s *stage) found(n int) {
	s.addMasters(n)
	for _, m := range s.masters {
		s.servers[m.Name] = m
	}
	s.values = s.held()
}

// repeat plays an event several times, and tells the verdicts in their order.
func (s *stage) repeat(times int, every time.Duration, event string) string {
	var verdicts []string
	count := 0
	for i := range times {
		line, _, _ := strings.Cut(s.do(strings.ReplaceAll(event, "#", strconv.Itoa(i))), "\n")
		verdict, _, _ := strings.Cut(line, ": ")
		if len(verdicts) == 0 || verdicts[len(verdicts)-1] != verdict {
			verdicts, count = append(verdicts, verdict), 0
		}
		count++
		s.sleep(every)
	}
	switch {
	case verdicts[0] == "":
		return "" // all goes on beside
	case len(verdicts) == 1:
		return fmt.Sprintf("%s each time\n", verdicts[0])
	}
	return fmt.Sprintf("%s the last %d times\n", strings.Join(verdicts, ", then "), count)
}

// sleepUntil lets time pass until a master holds something, or has heard a command some times since the last heard.
func (s *stage) sleepUntil(words []string) {
	m := s.servers[words[0]]
	happened := func() bool {
		switch {
		case words[1] == "holds" && words[2] == "nothing":
			return m.Value(key) == ""
		case words[1] == "holds":
			return m.Value(key) == meant(words[2])
		}
		heard := ", " + strings.Join(s.heardSince(m.Name, s.heardTo), ", ") + ","
		return strings.Count(heard, ", "+words[2]+",") >= atoi(words[3])
	}
	step := 5 * time.Millisecond
	for began := time.Now(); !happened(); s.elapse(step) {
		if len(s.heardSince(m.Name, s.heardTo)) > 0 {
			step = 200 * time.Microsecond
		}
		if time.Since(began) > 2*time.Minute {
			s.t.Fatalf("it did not happen: %v", words)
		}
	}
}

// changed tells what has changed since it was told last.
func (s *stage) changed() string {
	var text strings.Builder
	if len(s.listeners) > 0 {
		s.Settle()
	}
	for len(s.ended) > 0 {
		first, n := s.ended[0], 1
		for n < len(s.ended) && s.ended[n].how == first.how {
			n++
		}
		switch last := s.ended[n-1]; {
		case last.what != first.what:
			first.what = fmt.Sprintf("%s and %d more", first.what, n-1)
		case n > 1:
			first.what = fmt.Sprintf("%s, %d times", first.what, n)
		}
		s.ended = s.ended[n:]
		fmt.Fprintf(&text, "%s: %s", first.what, first.how)
	}
	for _, x := range s.listeners {
		if words := x.take(); words != "" {
			fmt.Fprintf(&text, "%s hears %s\n", x.name, words)
		}
	}
	for _, p := range s.processes {
		if judged := p.judges(); judged != p.told {
			fmt.Fprintf(&text, "%s: %s\n", p.name, judged)
			p.told = judged
		}
	}
	if held := s.held(); held != s.values {
		fmt.Fprintf(&text, "the masters hold %s\n", held)
		s.values = held
	}
	return text.String()
}

// held returns what the masters hold under the key.
func (s *stage) held() string {
	var words []string
	for _, m := range s.masters {
		words = append(words, named(text(m)))
	}
	return strings.Join(words, " ")
}

var tokens = map[string]string{"A": tokenA, "B": tokenB, "C": tokenC, "X": foreign, "-": "", "A+": tokenA + ", grown"}

// meant is the value that a script means by a word: a token by its letter, x*9 is xxxxxxxxx.
func meant(word string) string {
	if v, ok := tokens[word]; ok {
		return v
	}
	if of, times, ok := strings.Cut(word, "*"); ok && len(of) == 1 {
		return strings.Repeat(of, atoi(times))
	}
	return word
}

// named is the word for a value.
func named(value string) string {
	for word, token := range tokens {
		if value == token {
			return word
		}
	}
	if len(value) > 9 && value == strings.Repeat(value[:1], len(value)) {
		return fmt.Sprintf("%s*%d", value[:1], len(value))
	}
	return value
}

var (
	moment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	setID    = regexp.MustCompile(`[0-9a-f]{32}`)
	anyToken = strings.NewReplacer(tokenA, "A", tokenB, "B", tokenC, "C", foreign, "X", key, "KEY")
)

// readable replaces tokens by their letters, and moments by how far they are away.
func readable(text string) string {
	text = setID.ReplaceAllString(anyToken.Replace(text), "SET")
	return moment.ReplaceAllStringFunc(text, func(at string) string {
		when, _ := time.Parse(time.RFC3339, at)
		return fmt.Sprintf("now %+.0fs", time.Until(when).Seconds())
	})
}

// lively is a TTL in words.
func lively(ttl time.Duration) string {
	switch ttl {
	case -1:
		return "forever"
	case -2:
		return "absent"
	}
	return ttl.String()
}

func atoi(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

// cutTTL cuts "for TTL" off.
func cutTTL(words []string) (rest []string, ttl time.Duration) {
	if i := slices.Index(words, "for"); i >= 0 {
		return slices.Delete(slices.Clone(words), i, i+2), datatest.Duration(words[i+1])
	}
	return words, 0
}
