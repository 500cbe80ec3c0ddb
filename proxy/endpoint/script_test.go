package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/resp"
)

// Questions in testdata/*.txt are
//
//	redis://h/3                  what the URL says, or what is wrong with it
//	explain plain: EOF           what an operator reads of an error, of a server with TLS or without
//	agree a@1 silent b@2         which master Sentinels name, by the epochs that they know
func TestQuestions(t *testing.T) {
	datatest.Run(t, func(t *testing.T, question string) string {
		kind, rest, _ := strings.Cut(question, " ")
		switch kind {
		case "explain":
			return explanation(t, rest)
		case "agree":
			return agreed(strings.Fields(rest))
		}
		answer := whatURLSays(question)
		if strings.Contains(answer, "hunter2") {
			t.Errorf("%s: a secret is shown: %s", question, answer)
		}
		return answer
	})
}

func whatURLSays(url string) string {
	e, err := Parse(url)
	if err != nil {
		return err.Error()
	}
	says := fmt.Sprintf("%s: %s %s, user %q, password %q, database %d, TLS %v", e.Name, e.Network, e.Address, e.Username, string(e.Password), e.DB, e.TLS != nil)
	if g := e.sentinels; g != nil {
		says += fmt.Sprintf("; %s at %q, user %q, password %q, TLS %v", g.name, g.addresses, g.entry.Username, string(g.entry.Password), g.entry.TLS == e.TLS && e.TLS != nil)
	}
	return says
}

type serverAnswer string

func (a serverAnswer) Error() string { return string(a) }
func (serverAnswer) RedisError()     {}

func explanation(t *testing.T, question string) string {
	of, text, _ := strings.Cut(question, ": ")
	server := Endpoint{}
	if of == "TLS" {
		server.TLS = &TLS{}
	}
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	err, known := map[string]error{
		"nothing":                 nil,
		"no Redis":                resp.MalformedError("unknown type byte"),
		"the deadline":            context.DeadlineExceeded,
		"dial, the deadline":      dial(os.ErrDeadlineExceeded),
		"handshake, the deadline": fmt.Errorf("a handshake: %w", context.DeadlineExceeded),
		"twice, the deadline":     fmt.Errorf("a:1, which the Sentinels name as m: %w", server.Explain(os.ErrDeadlineExceeded)),
		"EOF":                     io.EOF,
		"reset":                   &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"no such name in time":    dial(&net.DNSError{Name: "redis.example", Err: "i/o timeout", IsTimeout: true}),
		"connection refused":      dial(syscall.ECONNREFUSED),
	}[text]
	if !known {
		err = serverAnswer(text)
	}
	got := server.Explain(err)
	if got == nil {
		return "nothing"
	}
	if !errors.Is(got, err) {
		t.Errorf("%s: the explanation hides the error", question)
	}
	return got.Error()
}

// agreed tells the master that three Sentinels agree on, and whether these answers are enough.
func agreed(words []string) string {
	var answers []sentinelAnswer
	for _, word := range words {
		master, epoch, ok := strings.Cut(word, "@")
		n, _ := strconv.ParseInt(epoch, 10, 64)
		answer := sentinelAnswer{master: master, epoch: n}
		if !ok {
			answer = sentinelAnswer{sentinel: "s", err: errors.New("no answer")}
		}
		answers = append(answers, answer)
	}
	master, err := agreedMaster("m", answers)
	if err != nil {
		master = err.Error()
	}
	if majorityAgrees(3)(answers) {
		return master + ", and nobody else need be asked"
	}
	return master
}
