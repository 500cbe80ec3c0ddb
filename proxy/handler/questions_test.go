package handler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// The questions of testdata are what clients send, and what package handler makes of it.
func TestQuestions(t *testing.T) {
	datatest.Run(t, func(t *testing.T, question string) string {
		args := proxytest.Words(strings.NewReplacer(`\r`, "\r", `\x00`, "\x00").Replace(question))
		switch kind, text, _ := strings.Cut(question, " \""); {
		case strings.HasPrefix(question, "CLIENT LIST"):
			f, refusal := parseList(args)
			return answer(refusal, fmt.Sprintf("%s %v", [...]string{"any", "normal", "replica", "pubsub", "master"}[f.kind], f.ids))
		case strings.HasPrefix(question, "CLIENT KILL"):
			f, refusal := parseKill(args)
			return answer(refusal, strings.Join(endedBy(f), " "))
		case strings.HasPrefix(question, "CLIENT TRACKING"):
			return fmt.Sprint(redirectIn(args))
		case kind == "upstream says":
			return answer(refusalIn("", []byte(proxytest.Unquote("\""+text))), "it may")
		case kind == "upstream refuses":
			return answer(refusalIn(wire.Error(proxytest.Unquote("\""+text)), nil), "it may")
		}
		return transactionOf(question)
	})
}

func answer(refusal wire.Error, otherwise string) string {
	if refusal == "" {
		return otherwise
	}
	return strings.TrimSpace(string(refusal))
}

// endedBy tells which of two clients CLIENT KILL ends. Bob asks.
func endedBy(f killFilter) (ended []string) {
	alice := &clientStatus{id: 7, address: "10.0.0.7:5000", local: "10.0.0.1:6380", age: time.Minute, published: published{User: "alice"}}
	bob := &clientStatus{id: 8, address: "10.0.0.8:5000", local: "10.0.0.1:6380", age: time.Hour, published: published{User: "bob"}, subscriptions: [3]int{1, 0, 0}}
	if f.matches(alice, false) {
		ended = append(ended, "alice")
	}
	if f.matches(bob, true) {
		ended = append(ended, "bob")
	}
	return ended
}

// transactionOf says what becomes of the last command.
func transactionOf(commands string) string {
	client := multiClient{}
	var step multiStep
	var refusal wire.Error
	for text := range strings.SplitSeq(commands, "; ") {
		switch {
		case text == "MULTI" && client.state == outside:
			client.state = held
			continue
		case text == "other rules":
			client.generation++
			continue
		case client.state == outside && strings.HasPrefix(text, "SELECT "):
			client.db = int(text[len(text)-1] - '0')
			continue
		case client.state == outside && strings.HasPrefix(text, "WATCH lock:"):
			client.watched = watched{locks: []*redlock.Watch{{}}, db: client.db}
			continue
		case client.state == outside && strings.HasPrefix(text, "WATCH "):
			client.watched = watched{upstream: true}
			continue
		}
		if step, refusal = client.says(text); step == keep {
			client.calls = append(client.calls, lock.Command{})
		} else if step == abort {
			client.state = aborted
		}
	}
	name := [...]string{keep: "keep", check: "check", sendHeld: "send what is held", forward: "forward", forwardRefused: "forward, to be refused",
		forwardUncounted: "forward, and count no replies", execLocks: "EXEC on the masters", execHeld: "EXEC of what is held at the upstream",
		execUpstream: "EXEC at the upstream", execNothing: "EXEC of nothing", discard: "DISCARD", discardUpstream: "DISCARD at the upstream",
		refuse: "refuse", abort: "abort", end: "end"}[step]
	state := [...]string{outside: "outside", held: "held", atUpstream: "at the upstream", atLocks: "at locks", aborted: "aborted"}[client.state]
	return strings.TrimSpace(fmt.Sprintf("%s (%s) %s", name, state, strings.TrimSpace(string(refusal))))
}
