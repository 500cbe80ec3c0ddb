package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/corpus"
	"redlock-proxy/integration/rig"
)

// A story is a scenario of a file in stories/, a line an event. A line of a client is its
// name, what it is asked in the words of client_test.go without the lock, a colon and the answer:
//
//	first acquire 2m: yes        another answer fails the scenario
//	first mine? yes              it fails only if the library has the means and answers otherwise
//	first acquire 2m: yes in time     it is asked until it answers that
//	first acquire 2m: no at last      it is asked again while too few masters answer in time
//	first begins wait 2m 2m      nobody waits for the answer
//	first hears: yes             the answer to that
//
// A time "short" is the library's shortest TTL. A word that is no time names another lock.
// Lines that begin "if it waits:" or "if it renews:" are for such libraries, and "if so:" is
// for one that answered the question before. The function perform has the other lines.
type story = corpus.Story

func stories(t *testing.T, file string) []story {
	t.Helper()
	return corpus.Read(rig.ReadFile(t, "conformance/stories/"+file+".txt")).Stories
}

// A run is one story of one library. At the first event with a wrong result, err says what
// happened, and no further event runs.
type run struct {
	t       *testing.T
	cluster *rig.Cluster
	proxy   *rig.Proxy
	library library
	lock    string
	start   func(name string) (*client, error) // starts a client when its name occurs first
	clients map[string]*client
	more    func(event string) error // performs a line that only one test knows; nil: there is none

	where   map[string][]string       // keys, by lock
	before  []map[string]rig.KeyState // what was remembered
	tried   func()                    // waits until somebody has tried
	answers bool                      // whether the library had the means for the last question
	views   int                       // how many questions it has answered
	err     error
}

// errUnsupported: the library has no means for the request.
var errUnsupported = errors.New("unsupported")

func (s *run) tell(story story) error {
	for _, event := range story.Lines {
		if s.perform(event); s.err != nil {
			return fmt.Errorf("%s: %w", event, s.err)
		}
	}
	return nil
}

func (s *run) perform(event string) {
	_, cannotWait := s.library.skips["waiting"]
	for condition, holds := range map[string]bool{
		"if it waits: ": !cannotWait, "if it renews: ": s.library.renews, "if so: ": s.answers,
		"if it sends strings: ": s.library.library != "Redisson",
	} {
		if rest, isConditional := strings.CutPrefix(event, condition); isConditional {
			if holds {
				s.perform(rest)
			}
			return
		}
	}
	words := strings.Fields(event)
	lock := s.named(words[1:])
	number, _ := strconv.Atoi(words[0])
	switch {
	case words[0] == "for": // for TIME: an event again and again
		length, _ := time.ParseDuration(strings.TrimSuffix(words[1], ":"))
		for end := time.Now().Add(length); s.err == nil && time.Now().Before(end); rig.Pause(s.t.Context(), 200*time.Millisecond) {
			s.perform(strings.Join(words[2:], " "))
		}
	case event == "on a quorum", event == "on a quorum awaited":
		s.onQuorum(s.named(words[3:]))
	case words[0] == "gone":
		s.gone(lock)
	case words[0] == "lasts": // more than TIME is left on a majority
		s.lasts(lock, s.milliseconds(words[1]))
	case words[0] == "renewed":
		s.renewed(lock)
	case event == "remember it":
		s.before = s.settledContents(lock)
	case event == "unchanged":
		s.holdsStill(lock)
	case event == "watch":
		s.tried = s.watch(lock)
	case event == "somebody has tried":
		s.tried()
	case event == "rest": // by then a waiter has done what it does before it rests; no result depends on it
		rig.Pause(s.t.Context(), waitersRest)
	case event == "it could look at the lock":
		if s.views == 0 {
			s.err = errUnsupported
		}
	case len(words) > 2 && words[1] == "masters" && number == 0:
		for _, word := range words[2:] {
			n, _ := strconv.Atoi(word)
			s.master(words[0], s.cluster.Masters[n-1])
		}
	case len(words) == 3 && words[1] == "masters" && words[2] == "vote":
		s.vote(number)
	case words[0] == "kill" && s.clients[words[1]] != nil:
		s.clients[words[1]].kill()
		delete(s.clients, words[1])
	default:
		s.converse(event)
	}
}

func (s *run) master(what string, master *rig.Server) {
	switch what {
	case "kill":
		master.Kill()
	case "start":
		master.Start(s.t)
	case "stop":
		master.Pause()
		s.t.Cleanup(master.Resume)
	}
}

// converse performs a line of a client.
func (s *run) converse(event string) {
	question, want, _ := strings.Cut(event, ": ")
	isOptional := false
	if before, after, found := strings.Cut(event, "? "); found {
		question, want, isOptional = before, after, true
	}
	words := strings.Fields(question)
	isKnown := len(words) > 1 && slices.Contains(strings.Fields("begins hears acquire wait extend release steal held mine"), words[1])
	if !isKnown {
		if s.more == nil {
			s.err = errors.New("nobody knows this event")
			return
		}
		if err := s.more(event); s.err == nil {
			s.err = err
		}
		return
	}
	c := s.client(words[0])
	if s.err != nil {
		return
	}
	if words[1] == "hears" {
		s.judge(isOptional, want, c, question)
		return
	}
	words = slices.DeleteFunc(words[1:], func(word string) bool { return word == "begins" })
	lock := s.named(words[1:])
	s.keys(c, lock)
	line := words[0] + " " + lock
	for _, word := range words[1:] {
		if ms := s.milliseconds(word); ms > 0 {
			line += fmt.Sprint(" ", ms)
		}
	}
	tell := func() {
		if s.err == nil {
			s.err = c.tell(line)
		}
	}
	wanted, inTime := strings.CutSuffix(want, " in time")
	wanted, atLast := strings.CutSuffix(wanted, " at last")
	switch {
	case strings.Contains(question, " begins "):
		tell()
	case inTime || atLast:
		s.patiently(question, func() error {
			answer, err := c.ask(line)
			if atLast && err == nil && answer != wanted {
				s.err = fmt.Errorf("%s answers %q, want %q", c.name, answer, wanted)
			}
			if err == nil && answer != wanted {
				err = fmt.Errorf("the answer is %q", answer)
			}
			return err
		})
	default:
		tell()
		s.judge(isOptional, want, c, question)
	}
}

// judge compares the next answer with the wanted one.
func (s *run) judge(isOptional bool, want string, c *client, question string) {
	if s.err != nil {
		return
	}
	answer, err := c.answer()
	if s.answers = answer != "unsupported"; s.answers && isOptional {
		s.views++
	}
	var said saidError
	isError := errors.As(err, &said)
	switch swallows := s.library.swallowsErrors; {
	case want == "cannot tell" && swallows: // it takes every error for "no", so it must answer "no"
		if err != nil || answer != "no" {
			s.err = fmt.Errorf("%s answers %q (%v) to %q without a quorum, and the list says that it takes every error for \"no\"", c.name, answer, err, question)
		}
	case want == "cannot tell":
		if text := s.lost(); !isError || !strings.Contains(string(said), text) {
			s.err = fmt.Errorf("%s answers %q (%v) to %q without a quorum, want an error with %q", c.name, answer, err, question, text)
		}
	case err != nil && !(want == "anything" && isError):
		s.err = err
	case answer == "unsupported" && !isOptional:
		s.err = errUnsupported
	case answer != want && s.answers && want != "anything":
		s.err = fmt.Errorf("%s answers %q to %q, want %q", c.name, answer, question, want)
	}
}

// lost is a part of the error by which an application hears of a lost quorum: in the proxy's
// words, or in the library's own.
func (s *run) lost() string {
	if s.library.failedNode != "" {
		return s.library.failedNode
	}
	return "QUORUMLOST"
}

func (s *run) client(name string) *client {
	if s.clients[name] == nil && s.err == nil {
		var c *client
		if c, s.err = s.start(name); s.err == nil {
			s.clients[name] = c
		}
	}
	return s.clients[name]
}

// milliseconds returns a time of a story, or zero for a word that is none.
func (s *run) milliseconds(word string) (sum int64) {
	for part := range strings.SplitSeq(word, "+") {
		length, err := time.ParseDuration(part)
		if part == "short" {
			length, err = s.library.shortest, nil
		}
		if err != nil {
			return 0
		}
		sum += length.Milliseconds()
	}
	return sum
}

// named returns the lock that a line is about.
func (s *run) named(words []string) string {
	for _, word := range words {
		if s.milliseconds(word) == 0 && !strings.ContainsAny(word, ":?") {
			return "lock:" + word + "-" + strings.TrimPrefix(s.lock, "lock:")
		}
	}
	return s.lock
}

// keys returns the keys of a lock. It asks a client once for each lock, which must not be
// waiting for something at that time; nil: one was asked before.
func (s *run) keys(c *client, lock string) []string {
	if s.where[lock] == nil && s.err == nil {
		if c == nil {
			c = s.client("first")
		}
		var answer string
		if answer, s.err = c.ask("key", lock); s.err == nil && answer == "" {
			s.err = errors.New("the library names no key of " + lock)
		}
		s.where[lock] = strings.Fields(answer)
	}
	return s.where[lock]
}

// patiently polls check. If check still fails after Patience, its last error ends the run.
func (s *run) patiently(what string, check func() error) {
	for deadline := time.Now().Add(rig.Patience); s.err == nil; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if s.err == nil && time.Now().After(deadline) {
			s.err = fmt.Errorf("%s: %w", what, err)
		}
	}
}
