package lock

import (
	"crypto/sha1"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// What a client of a script sends.

// rulesOf reads rules: patterns, each with what it says.
func rulesOf(t *testing.T, text string) (rules route.Rules) {
	for each := range strings.SplitSeq(text, ", ") {
		words := strings.Fields(each)
		rule := route.Rule{Match: words[0], DB: route.AnyDB}
		for i := 1; i+1 < len(words); i += 2 {
			switch d := datatest.Duration(words[i+1]); words[i] {
			case "ttl":
				rule.DefaultTTL = d
			case "wait":
				rule.Wait = d
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// sends has a client send a command or a transaction.
func (s *stage) sends(name string, modifiers []string, text string) {
	client := s.client(name)
	text, outcome, isAnswered := strings.Cut(text, " <- ")
	if isAnswered {
		o := outcomeOf(s.t, outcome)
		s.lock.always = &o
	}
	var calls []Command
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "nothing"), " | ") {
		if line != "" {
			calls = append(calls, s.called(client, line))
		}
	}
	var watches []*redlock.Watch
	isTransaction := false
	for i, word := range modifiers {
		switch word {
		case "resp3":
			calls[0].Version = wire.RESP3
		case "in":
			calls[0].DB, _ = strconv.Atoi(modifiers[i+1])
		case "reserved":
			calls[0].Route.Reserved = true
		case "some":
			calls[0].Route.Lock = []bool{true, false, true}
		case "argument":
			last := len(calls[0].Args) - 1
			calls[0].Route.Keys, calls[0].Route.Lock = append(calls[0].Route.Keys, last), append(calls[0].Route.Lock, true)
		case "watching":
			watches = []*redlock.Watch{{}}
		case "multi":
			isTransaction = true
		case "watches":
			_, reply := s.Watch(client.ctx, 0, calls[0].Args)
			s.told.Printf("%q", reply)
			return
		}
	}
	s.start(name, func() []byte {
		if isTransaction {
			t := Transaction{Commands: calls, Watches: watches}
			if len(calls) > 0 {
				t.DB, t.Version, t.Leases = calls[0].DB, calls[0].Version, calls[0].Leases
			}
			return s.Exec(client.ctx, nil, t)
		}
		return s.Do(client.ctx, nil, calls[0])
	})
}

// called is a command of a client.
func (s *stage) called(client *actor, line string) Command {
	sums := func(word string) string {
		text := strings.ReplaceAll(strings.Trim(word, "<>"), `\x20`, " ")
		return fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	}
	call := s.call(regexp.MustCompile(`<\S+>`).ReplaceAllStringFunc(line, sums))
	call.From, call.Client = client.Client, loggedClient(client.Info().Name)
	if s.Leases != nil {
		call.Leases = s.holder(client.Info().Name)
	}
	return call
}

// A loggedClient is how the log names a client.
type loggedClient string

func (c loggedClient) LogValue() slog.Value { return slog.GroupValue(slog.String("name", string(c))) }

// start runs a command beside the script.
func (s *stage) start(name string, do func() []byte) {
	began := time.Now()
	s.mu.Lock()
	s.pending++
	s.mu.Unlock()
	go func() {
		reply := string(do())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pending--
		text := strings.TrimSuffix(reply, "\r\n")
		if text = strings.ReplaceAll(text, "\r\n", `\r\n`); len(text) > 400 {
			text = fmt.Sprintf("%.20s... %d bytes", text, len(reply))
		}
		if after := time.Since(began); after > 0 && s.drawn {
			text = fmt.Sprintf("%s: %s at last", name, text)
		} else if after > 0 {
			text = fmt.Sprintf("%s: %s after %v", name, text, after)
		} else if name != "a" {
			text = name + ": " + text
		}
		s.replies = append(s.replies, text)
	}()
}
