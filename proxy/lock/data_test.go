package lock

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// TestData asks about commands as they are, without masters. A question is a command, and what is asked of it.
func TestData(t *testing.T) { datatest.Run(t, ask) }

var parseNow = time.UnixMilli(1_700_000_000_000)

func optionsOf(args [][]byte, now time.Time) (options, wire.Error) {
	return Command{Args: args, Route: route.Route{Spec: route.Builtin().Lookup(args)}}.options(now)
}

const (
	releaseText = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	otherText   = "return redis.call('set','lock:undeclared','1')"
)

// argsOf splits a command into words. Escapes are those of Go.
func argsOf(line string) (args [][]byte) {
	for word := range strings.FieldsSeq(line) {
		texts := strings.NewReplacer("RELEASE", releaseText, "OTHER", otherText)
		if name, isSum := strings.CutPrefix(word, "<"); isSum {
			word = fmt.Sprintf("%x", sha1.Sum([]byte(texts.Replace(strings.TrimSuffix(name, ">")))))
		}
		word = texts.Replace(word)
		if plain, err := strconv.Unquote(`"` + word + `"`); err == nil {
			word = plain
		}
		args = append(args, []byte(word))
	}
	return args
}

func ask(t *testing.T, question string) string {
	verb, rest, _ := strings.Cut(question, " ")
	args := argsOf(rest)
	switch verb {
	case "relative":
		before := fmt.Sprintf("%s", args)
		o, _ := optionsOf(args, parseNow)
		out := string(bytes.Join(o.relative(args), []byte(" ")))
		if after := fmt.Sprintf("%s", args); after != before {
			t.Errorf("%s became %s: the arguments are the session's", before, after)
		}
		return out
	case "ttl":
		n, _ := strconv.ParseInt(rest, 10, 64)
		return lockTTL(n).String()
	case "timeout":
		if d := timeoutOf(args); d != forEver {
			return d.String()
		}
		return "for ever"
	case "waits":
		r := redlock.RunRequest{Args: args, Keys: [][]byte{[]byte("a"), []byte("b")}}
		kind, keys := waitsOn(&r)
		return fmt.Sprintf("%s %s", [...]string{forLock: "a lock", forElements: "elements", forMembers: "members"}[kind], keys)
	case "overlaps":
		return yesOrNo(overlapping(args))
	case "acquire":
		return resultName((answer{kind: redlock.KindAcquire, outcome: outcomeOf(t, rest).Outcome}).result())
	case "script":
		return resultName((answer{kind: redlock.KindRun, outcome: outcomeOf(t, rest).Outcome}).resultOn([][]byte{[]byte("k"), []byte("j")}))
	case "line":
		return lineOf(args)
	}
	o, reply := optionsOf(argsOf(question), parseNow)
	if reply != "" {
		return strings.TrimSuffix(string(reply), "\r\n")
	}
	return o.words()
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func resultName(r tryResult) string {
	return map[tryResult]string{tryGranted: "granted", tryRefused: "refused", tryUndecided: "undecided", tryAgain: "again"}[r]
}

// words tells what the options say.
func (c options) words() string {
	var words []string
	for _, flag := range []struct {
		set  bool
		word string
	}{
		{c.onlyAbsent, "only if absent"}, {c.onlyPresent, "only if present"}, {c.get, "get"}, {c.keepTTL, "keeps the TTL"},
		{c.conditional, "conditional"}, {c.over, "over"}, {c.expires != "", "if " + c.expires}, {c.bothXXLT, "and XX"},
		{c.ttl == math.MaxInt64-parseNow.UnixMilli(), "the longest TTL"},
		{c.ttl != 0 && c.ttl != math.MaxInt64-parseNow.UnixMilli() && !(c.conditional && c.timeAt == 0), fmt.Sprintf("TTL %d ms", c.ttl)},
		{c.timeAt > 0, fmt.Sprintf("a time in argument %d, its unit in %d", c.timeAt, c.unitAt)},
	} {
		if flag.set {
			words = append(words, flag.word)
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// overlapping asks a plane that knows both scripts, and whose rule for the key waits has a wait.
func overlapping(args [][]byte) bool {
	texts := NewScripts(1<<20, nil)
	texts.Register([]byte(releaseText))
	texts.Register([]byte(otherText))
	router := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "waits", DB: route.AnyDB, Wait: time.Second}, {Match: "ruled", DB: route.AnyDB}}}
	p := New(Config{Scripts: texts, Router: func() *route.Router { return router }})
	return p.Overlaps(Command{Args: args, Route: router.Route(0, args)})
}

// lineOf tells in which line a script waits, by these rules: now has no wait, slow waits for a minute, and k and
// lock:* for a second. Its last argument is a lock key, too.
func lineOf(args [][]byte) string {
	p := newFakeLockerPlane(nil, route.Rule{Match: "now", DB: route.AnyDB}, route.Rule{Match: "slow", DB: route.AnyDB, Wait: time.Minute},
		route.Rule{Match: "k", DB: route.AnyDB, Wait: time.Second}, route.Rule{Match: "lock:*", DB: route.AnyDB, Wait: time.Second})
	call := p.call(string(bytes.Join(args, []byte(" "))))
	last := len(args) - 1
	if !slices.Contains(call.Route.Keys, last) {
		call.Route.Keys, call.Route.Lock = append(call.Route.Keys, last), append(call.Route.Lock, true)
	}
	rule, locks := p.scriptWaitsFor(call)
	if rule == nil {
		return "none"
	}
	return fmt.Sprintf("%s as %s says, for %v", locks, rule.Match, rule.Wait)
}
