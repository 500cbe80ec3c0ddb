package route

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/redlock/resp"
)

// TestQuestions asks the questions in testdata/*.txt. The first ones of a section say what holds for those after them:
//
//	rules lock:* job-?@3+jobs:*    the lock rules: a glob, a database, a companion. Answer: keys to try out
//	db 3
//	become lock:* job:*            the rules change. Answer: the new rules, and what is held back for how long
//	after 1m                       Answer: what is held back still
//	server [["get",2,...]]         the server answers COMMAND so. Answer: what is wrong with it
//
// The others:
//
//	what GET k                     a command's name, flags and keys by the table, or what is wrong with it
//	key k / channel c              whether it is a lock, or belongs to one
//	glob "k*" "key"                whether the glob matches
//	begins x                       whether keys that begin so need a look
//	trait script / trait shareable s    the commands that have it, and begin so
//	GET k                          where a command goes; see describe
func TestQuestions(t *testing.T) {
	var section *testing.T
	var s *state
	datatest.Run(t, func(t *testing.T, question string) string {
		if section != t {
			section, s = t, &state{router: &Router{Table: Builtin()}, now: time.Now()}
		}
		return s.answer(t, question)
	})
}

type state struct {
	router *Router
	db     int
	now    time.Time
}

func (s *state) answer(t *testing.T, question string) string {
	word, rest, _ := strings.Cut(question, " ")
	text := []byte(rest)
	if unquoted, err := strconv.Unquote(rest); err == nil {
		text = []byte(unquoted)
	}
	switch word {
	case "rules":
		s.router = &Router{Table: s.router.Table, Rules: readRules(t, rest)}
		var examples []string
		for _, rule := range s.router.Rules {
			examples = append(examples, fmt.Sprintf("%q", rule.Example()))
		}
		return "for example " + strings.Join(examples, " ")
	case "db":
		db, err := strconv.Atoi(rest)
		if s.db = db; err != nil {
			t.Fatal(err)
		}
		return "ok"
	case "become":
		s.router = s.router.WithRules(readRules(t, rest), s.now, 10*time.Minute, time.Minute)
		return fmt.Sprintf("generation %d of %s; %s", s.router.Generation, strings.Join(s.router.Rules.Labels(), " "), s.held())
	case "after":
		pause, err := time.ParseDuration(rest)
		if s.now = s.now.Add(pause); err != nil {
			t.Fatal(err)
		}
		return s.held()
	case "server":
		table, err := s.router.Table.With(commandReply(t, rest))
		if err != nil {
			return err.Error()
		}
		s.router = s.router.WithTable(table)
		return "ok"
	case "what":
		return s.what(proxytest.Words(string(text)))
	case "key":
		rule, isLock := s.router.Rules.Of(s.db, text)
		return kindOf(rule, isLock)
	case "channel":
		return kindOf(nil, s.router.Rules.CoversChannel(text))
	case "glob":
		var pattern, matched string
		if _, err := fmt.Sscanf(rest, "%q %q", &pattern, &matched); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.GlobMatch(pattern, []byte(matched)))
	case "begins":
		return fmt.Sprint(s.router.Rules.mayBegin(rest[0]))
	case "trait":
		return commandsOf(t, rest)
	}
	return s.route(proxytest.Words(question))
}

func kindOf(rule *Rule, isLock bool) string {
	switch {
	case !isLock:
		return "none"
	case rule == nil:
		return "belongs to a lock"
	}
	return "lock by " + rule.Name()
}

func readRules(t *testing.T, text string) (rules Rules) {
	for word := range strings.FieldsSeq(text) {
		parts := strings.Split(word, "+")
		match, db, isFor := strings.Cut(parts[0], "@")
		rule := Rule{Match: match, DB: AnyDB, Companions: parts[1:]}
		if isFor {
			var err error
			if rule.DB, err = strconv.Atoi(db); err != nil {
				t.Fatal(err)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// held returns the rules whose keys are held back, and for how long.
func (s *state) held() string {
	var rules []string
	for _, moving := range s.router.Moving(s.now) {
		rules = append(rules, fmt.Sprint(moving.Rule.Name(), " for ", moving.Until.Sub(s.now)))
	}
	text := "held back: " + strings.Join(rules, ", ")
	switch {
	case s.router.HoldsBack() && len(rules) == 0:
		return "nothing is held back any more"
	case !s.router.HoldsBack():
		return "nothing can be held back" + strings.Join(rules, ", ")
	}
	return text
}

// commandReply reads a reply to COMMAND from JSON.
func commandReply(t testing.TB, text string) []any {
	t.Helper()
	var reply []any
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return reply
}

// what says what the table knows of a command.
func (s *state) what(args [][]byte) string {
	spec := s.router.Table.Lookup(args)
	if spec == nil {
		return strings.TrimSpace(string(spec.Check(args)))
	}
	said := []string{spec.Name}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"readonly", spec.Readonly()}, {"write", spec.Write()}, {"blocking", spec.Blocking()}, {"no_multi", spec.NoMulti()}, {"shareable", spec.Is(Shareable)}} {
		if flag.set {
			said = append(said, flag.name)
		}
	}
	keys, exact := spec.AppendKeys(nil, args)
	text := strings.Join(said, " ") + ", keys " + strings.Trim(fmt.Sprint(keys), "[]")
	if !exact {
		text += "?"
	}
	if wrong := spec.Check(args); wrong != "" {
		text += ", " + strings.TrimSpace(string(wrong))
	}
	return text
}

// commandsOf returns the commands of a trait, those that begin so if it says how.
func commandsOf(t *testing.T, question string) string {
	name, begin, _ := strings.Cut(question, " ")
	at := slices.Index(traitNames, name)
	if at < 0 {
		t.Fatalf("no trait is named %s", name)
	}
	var all []string
	for spec := range Builtin().All() {
		if spec.Is(1<<at) && strings.HasPrefix(spec.Name, begin) {
			all = append(all, spec.Name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

var planeNames = map[Plane]string{Upstream: "upstream", Locks: "lock", Split: "split", Cross: "cross"}

// describe returns a route as text: the plane and the keys, as in "lock 1,2". If keys
// are not all of one kind, L marks the lock keys, as in "cross 1,2L". "!" means
// malformed, "#" reserved and ">" elsewhere.
func describe(to Route) string {
	var keys []string
	for i, at := range to.Keys {
		mark := ""
		if to.Lock[i] && to.Plane != Locks {
			mark = "L"
		}
		keys = append(keys, fmt.Sprint(at, mark))
	}
	text := strings.TrimSpace(planeNames[to.Plane] + " " + strings.Join(keys, ","))
	if to.Malformed {
		text += "!"
	}
	if to.Reserved {
		text += "#"
	}
	if to.Elsewhere {
		text += ">"
	}
	return text
}

// route describes where a command goes, and says for how long it is held back.
func (s *state) route(args [][]byte) string {
	to := s.router.Route(s.db, args)
	text := describe(to)
	if to.Rule != nil {
		text += " by " + to.Rule.Name()
	}
	if to.Plane == Split {
		upstreamHalf, lockHalf, ofLocks := to.Halves(args)
		text += fmt.Sprintf("; %s | %s: %s by %s", bytes.Join(upstreamHalf, []byte(" ")), bytes.Join(lockHalf, []byte(" ")), describe(ofLocks), ofLocks.Rule.Name())
	}
	if until := s.router.HeldBack(s.db, args, to, s.now); !until.IsZero() {
		text += "; held back for " + until.Sub(s.now).String()
	}
	return text
}

// No arguments are no command, and an unknown one has no traits.
func TestNoCommand(t *testing.T) {
	router := &Router{Table: Builtin(), Rules: Rules{{Match: "*", DB: AnyDB}}}
	if to := router.Route(0, nil); to.Spec != nil || to.Plane != Upstream || router.Table.Lookup(nil) != nil {
		t.Errorf("no arguments: %+v", to)
	}
	if unknown := (*Spec)(nil); unknown.Is(^Traits(0)) {
		t.Error("an unknown command has a trait")
	}
}
