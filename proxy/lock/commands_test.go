package lock

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/route"
)

// The scripts in testdata/commands show what the plane asks the masters for a command, and what it answers, in fake
// time that begins at the second 946684800. Every key is a lock key. The events:
//
//	a: SET k v NX PX 10 <- won     client a sends a command, and the masters answer so; * is "a" if no client is named
//	a resp3 in 3: GET k            modifiers: the protocol, the database, and: reserved, with some keys (the first
//	                               and the third are lock keys), with an argument that is a lock key
//	a multi: DEL k | GET j <- won  a transaction, of "nothing" if it has no command; "watching multi" has watched a key
//	a watches k
//	rules: a* ttl 30s, * wait 2s   the rules from now on; without this, one rule matches all keys
//	masters answer lost            what masters answer from now on; "about KEY" for one key
//	masters keep a lock            they have one lock, for all keys: the last event about it tells who holds it
//	x holds it, nobody holds it, nobody can know
//	masters keep a list            they have one list, for all keys; "k gets a b" pushes, and nobody hears of it
//	the key is of another type, an element is on too few masters
//	k is announced
//	masters take 1s                for each answer
//	notices end                    the masters announce nothing more
//	a took k v for 1h              its connection took a lock before, so it has a lease
//	all locks are renewed          the rules renew each lock of a connection
//	a leaves, a leaves as soon as masters answer, the process drains, the key moves as soon as masters answer
//	replies may be 10 bytes
//	after 300ms
//	times are drawn                of questions, so neither these nor the number of questions are printed
//	slow log, counts, clients, most refused, leases
//
// An outcome is words, separated by commas: see outcomeOf. Below an event stand the questions to the masters, the
// replies, what is counted, what the journal notes of the key, how many leases there are, and warnings. No value that
// is called secret may be in a log or in the journal.
func TestCommands(t *testing.T) {
	datatest.Play(t, "testdata/commands/*.txt", func(t *testing.T, told *datatest.Script) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, told)
			for event := range told.Events {
				s.happens(event)
				synctest.Wait()
				s.print()
			}
			s.end()
		})
	})
}

// A stage is what a script plays on.
type stage struct {
	t    *testing.T
	told *datatest.Script
	fakeLockerPlane
	lock    *fakeLock
	clients map[string]*actor
	drawn   bool // times are drawn

	mu      sync.Mutex
	replies []string
	pending int
	logged  int
	waiting int
	leases  int64
	verdict map[string][]events.Mark // by key: what the journal had
}

// An actor is a client of the plane.
type actor struct {
	*events.Client
	ctx   context.Context
	leave context.CancelFunc

	number int64
	holder *lease.Holder
}

var modifiers = regexp.MustCompile(`^([a-z]+)((?: [a-z0-9]+)*): `)

func newStage(t *testing.T, told *datatest.Script) *stage {
	s := &stage{t: t, told: told, lock: &fakeLock{}, clients: map[string]*actor{}, verdict: map[string][]events.Mark{}}
	s.fakeLockerPlane = newFakeLockerPlane(nil, route.Rule{Match: "*", DB: route.AnyDB})
	s.Draining = s.lock.drain()
	s.lines = newLines(Changes{Available: func() bool { return !s.lock.silent.Load() }, Subscribe: func(changed func(key []byte)) Tracker {
		s.lock.changed = changed
		return s.lock
	}})
	s.Journal = events.New(s.Log)
	s.Plane.IsSlow = func(took time.Duration) bool { return took >= 0 }
	s.locker.answer = s.lock.answers
	return s
}

func (s *stage) client(name string) *actor {
	if s.clients[name] == nil {
		a := &actor{number: int64(len(s.clients) + 1)}
		a.introduce(name)
		a.ctx, a.leave = context.WithCancel(s.t.Context())
		s.clients[name] = a
	}
	return s.clients[name]
}

// introduce makes the client known to a journal that is new.
func (a *actor) introduce(name string) {
	a.Client = events.NewClient(a.number, name, time.Now())
	a.Introduce(events.Identity{Name: name})
}

// happens makes an event happen.
func (s *stage) happens(event string) {
	if at := modifiers.FindStringSubmatch(event); at != nil && at[1] != "rules" {
		s.sends(at[1], strings.Fields(at[2]), strings.TrimPrefix(event, at[0]))
		return
	}
	words := strings.Fields(event)
	who, said := words[0], strings.Join(words[1:], " ")
	switch {
	case who == "rules:":
		s.routes.Store(&route.Router{Rules: rulesOf(s.t, said)})
	case strings.HasPrefix(event, "masters answer about "):
		s.lock.outcomes[words[3]] = outcomeOf(s.t, strings.Join(words[4:], " "))
	case strings.HasPrefix(event, "masters answer "):
		o := outcomeOf(s.t, strings.TrimPrefix(event, "masters answer "))
		s.lock.always = &o
	case strings.HasPrefix(event, "masters take "):
		s.lock.takes = datatest.Duration(words[2])
	case s.lock.happens(who, said):
	case event == "times are drawn":
		s.drawn = true
	case event == "all locks are renewed":
		s.renewLocks()
	case len(words) == 6 && words[1] == "took":
		s.holder(who).Took(0, []byte(words[2]), []byte(words[3]), datatest.Duration(words[5]), time.Now())
		s.leases = s.Leases.Counts().Held
	case said == "leaves":
		s.client(who).leave()
	case said == "leaves as soon as masters answer":
		s.lock.then = s.client(who).leave
	case event == "the key moves as soon as masters answer":
		s.lock.then = func() {
			now := time.Now()
			s.routes.Store(s.routes.Load().WithRules(nil, now, time.Hour, time.Minute).LeavingFor(now.Add(time.Hour)))
		}
	case strings.HasPrefix(event, "replies may be "):
		most, _ := strconv.ParseInt(words[3], 10, 64)
		s.MaxReply = func() int64 { return most }
	case who == "after":
		time.Sleep(datatest.Duration(words[1]))
	default:
		s.asks(event)
	}
}

// asks prints what the journal and the leases know.
func (s *stage) asks(event string) {
	switch event {
	case "slow log":
		for _, slow := range s.Journal.Slow(100) {
			s.told.Printf("%q by %s in %d", slow.Shown(), slow.Client.Name, slow.DB)
		}
	case "counts":
		total, _ := s.Journal.Commands(time.Now())
		s.told.Printf("%+v; %d without TTL", total, s.TakenWithoutTTL())
	case "clients":
		for _, name := range slices.Sorted(maps.Keys(s.clients)) {
			c := s.clients[name].Info()
			s.told.Printf("%s runs %q on %q", name, c.Command, c.Key)
		}
	case "most refused":
		for _, hot := range s.Journal.Hottest(10, time.Now(), func(int, []byte) bool { return true }) {
			s.told.Printf("%s", hot.Key)
		}
	case "log":
		s.told.Printf("%s", took.ReplaceAllString(s.log.String(), ""))
	case "leases":
		s.told.Printf("%d leases", s.Leases.Counts().Held)
	default:
		s.t.Fatalf("nobody knows the event %q", event)
	}
}

var took = regexp.MustCompile(`(time|took)=\S+ ?`)

// print prints what has come of an event.
func (s *stage) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.locker.requests()
	if s.drawn {
		asked = slices.Compact(asked)
	}
	if len(asked) > 6 {
		asked = counted(asked)
	}
	for _, request := range asked {
		s.told.Printf("asks %s", request)
	}
	slices.Sort(s.replies)
	for _, reply := range s.replies {
		s.told.Printf("%s", reply)
	}
	if s.replies = nil; s.pending > s.waiting {
		s.told.Printf("waits")
	}
	s.waiting = s.pending
	for _, counted := range s.meter.flush() {
		if s.drawn {
			counted, _, _ = strings.Cut(counted, " for ")
		}
		if strings.HasSuffix(counted, " held for 0s") {
			continue // released and taken at one moment, which the journal may hear in any order
		}
		s.told.Printf("counts %s", counted)
	}
	s.printJournal()
	if s.Leases != nil && s.Leases.Counts().Held != s.leases {
		s.leases = s.Leases.Counts().Held
		s.told.Printf("leases: %d", s.leases)
	}
	log := s.log.String()
	for line := range strings.Lines(log[s.logged:]) {
		if strings.Contains(line, "level=WARN") {
			_, message, _ := strings.Cut(line, "level=")
			s.told.Printf("%s", strings.TrimSpace(took.ReplaceAllString(message, "")))
		}
	}
	s.logged = len(log)
}

// counted is how often each of many questions was asked; of many different ones, only the first.
func counted(asked []string) []string {
	each := slices.Compact(slices.Clone(asked))
	if len(each) > 3 {
		return []string{fmt.Sprintf("%d times, and first: %s", len(asked), asked[0])}
	}
	for i, request := range each {
		n := 0
		for _, a := range asked {
			if a == request {
				n++
			}
		}
		each[i] = fmt.Sprintf("%d times: %s", n, request)
	}
	return each
}

// printJournal prints the verdicts that the journal has noted of the keys since the last event.
func (s *stage) printJournal() {
	for _, key := range []string{"k", "j", "lock:a", "lock:b", "other"} {
		marks := s.Journal.Verdicts(0, []byte(key))
		before, added := s.verdict[key], 0
		same := func(a, b events.Mark) bool {
			return a.At.Equal(b.At) && a.Verdict == b.Verdict && a.Client.Name == b.Client.Name
		}
		for !slices.EqualFunc(marks[added:], before[:min(len(before), len(marks)-added)], same) {
			added++
		}
		var lines []string
		for _, m := range marks[:added] {
			holder := ""
			if h, known := s.Journal.Holder(0, []byte(key), []byte("v"), time.Now()); known && m.Verdict == events.Granted {
				holder = ", a known holder"
				if h.Client.Name != m.Client.Name {
					holder = ", and the holder is " + h.Client.Name
				}
			}
			lines = append(lines, fmt.Sprintf("%s: %s, %s%s", key, m.Verdict, m.Client.Name, holder))
		}
		slices.Sort(lines) // several commands may end at one moment
		for _, line := range lines {
			s.told.Printf("%s", line)
		}
		if s.verdict[key] = marks; len(marks) == 4 && s.pending == 0 && marks[3].At.Equal(marks[0].At) {
			s.Journal = events.New(s.Log) // one more at this moment could not be seen
			clear(s.verdict)
			for name, client := range s.clients {
				client.introduce(name)
			}
		}
	}
}

// end ends all that waits, and looks for secrets.
func (s *stage) end() {
	for _, client := range s.clients {
		client.leave()
	}
	synctest.Wait()
	for _, client := range s.clients {
		if client.Info().Command != "" {
			s.t.Errorf("the journal still has it run %q", client.Info().Command)
		}
	}
	if s.Leases != nil {
		s.Leases.Close(s.t.Context())
	}
	if log := s.log.String(); strings.Contains(log, "secret") || strings.Contains(fmt.Sprint(s.Journal.Slow(100)), "secret") {
		s.t.Errorf("a value is in the log:\n%s", log)
	}
}
