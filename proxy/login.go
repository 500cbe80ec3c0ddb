package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// loginStep is one command that makes a new upstream connection look like the
// session it is for, and what to tell the client if the upstream refuses it;
// "" means that the refusal does not matter.
type loginStep struct {
	name    string
	command []byte
	refusal string
}

// refusalKept is how much is kept of an answer to a step.
const refusalKept = 4 << 10

// loginSteps are the proxy's own credentials, and what was answered here while
// the upstream was closed. The client's credentials are never among them
// (enterAsClient sends those, where the upstream has the users). The last is a
// PING, so that an upstream that accepts connections and answers nothing, or
// speaks no RESP, is found out before a client's command is with it.
func (s *session) loginSteps(login config.UpstreamLogin) []loginStep {
	var steps []loginStep
	add := func(refusal string, args ...string) { steps = append(steps, newLoginStep(refusal, args...)) }
	switch {
	case login.User != "":
		add(wire.ErrUpstreamRefused, "AUTH", login.User, login.Password)
	case login.Password != "":
		add(wire.ErrUpstreamRefused, "AUTH", login.Password)
	}
	if s.client.version == wire.RESP3 {
		add(wire.ErrUpstreamProtocol, "HELLO", "3")
	}
	if s.client.db != 0 {
		add(wire.ErrUpstreamRefused, "SELECT", fmt.Sprint(s.client.db))
	}
	if len(s.client.name) > 0 {
		add("", "CLIENT", "SETNAME", string(s.client.name))
	}
	for _, info := range s.client.info {
		add("", "CLIENT", "SETINFO", info.attribute, info.value)
	}
	if s.client.noEvict {
		add("", "CLIENT", "NO-EVICT", "on")
	}
	if s.client.noTouch {
		add("", "CLIENT", "NO-TOUCH", "on")
	}
	add(wire.ErrUpstreamReply, "PING")
	return steps
}

// newLoginStep is the step that sends this command.
func newLoginStep(refusal string, args ...string) loginStep {
	list := make([][]byte, len(args))
	for i, arg := range args {
		list[i] = []byte(arg)
	}
	return loginStep{args[0], resp.AppendCommand(nil, list...), refusal}
}

// enter makes a new connection that of the client, and returns what the client
// is to be told where it cannot.
func (s *session) enter(conn net.Conn, settings *config.Settings, deadline time.Time) (refusal string, err error) {
	if settings.Users.AtUpstream {
		return s.enterAsClient(conn, settings, deadline)
	}
	return logIn(conn, s.loginSteps(settings.Upstream), deadline, loginStep.refusedBy)
}

// logIn does the steps on a connection nobody else uses yet. The reply for the
// client is "" when all went well.
func logIn(conn net.Conn, steps []loginStep, deadline time.Time, refusedBy func(loginStep, []byte) string) (refusal string, err error) {
	_ = conn.SetDeadline(deadline)
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	var request []byte
	for _, step := range steps {
		request = append(request, step.command...)
	}
	if _, err := conn.Write(request); err != nil {
		return wire.ErrUpstreamDown, err
	}
	err = readAnswers(conn, len(steps), func(i int, answer []byte) error {
		if refusal = refusedBy(steps[i], answer); refusal != "" {
			return fmt.Errorf("it answers %s with %.200q", steps[i].name, answer)
		}
		return nil
	})
	switch {
	case err == nil, refusal != "":
		return refusal, err
	case errors.Is(err, errNoAnswers):
		return wire.ErrUpstreamReply, err
	}
	return wire.ErrUpstreamDown, err
}

// errNoAnswers: what a server sends is not what it was asked for.
var errNoAnswers = errors.New("its answers are none to what it was asked")

// readAnswers reads n replies from a connection that nobody else uses, and has
// judge look at the first refusalKept bytes of each until that returns an error.
func readAnswers(from net.Conn, n int, judge func(i int, answer []byte) error) error {
	var scanner resp.Scanner
	var answer []byte
	buf := make([]byte, conn.SmallBuffer)
	for answered := 0; answered < n; {
		size, err := from.Read(buf)
		if err != nil {
			return err
		}
		for unread := buf[:size]; len(unread) > 0; {
			used, done, err := scanner.Scan(unread)
			if err != nil || answered == n {
				return fmt.Errorf("%w: %.100q", errNoAnswers, unread)
			}
			answer = append(answer, unread[:min(used, refusalKept-len(answer))]...)
			unread = unread[used:]
			if !done {
				continue
			}
			if scanner.Kind() != '>' { // a push is no answer
				if err := judge(answered, answer); err != nil {
					return err
				}
				answered++
			}
			answer = answer[:0]
		}
	}
	return nil
}

// refusedBy judges the answer to a step, of which the first refusalKept bytes
// are given. What a server says in its present state (it loads, a script keeps
// it busy, it has no room) is for the client to see in the server's own words.
func (step loginStep) refusedBy(answer []byte) (refusal string) {
	isError := answer[0] == '-'
	switch {
	case isError && !bytes.HasSuffix(answer, []byte("\r\n")): // longer than what is kept
		return wire.ErrUpstreamReply
	case isError && turnsAway(answer):
		return string(answer)
	case step.name == "PING":
		// Any other error shows that it answers; what it thinks of the client's
		// command it says itself.
		if !isError && !bytes.Equal(answer, []byte(wire.Pong)) {
			return step.refusal
		}
		return ""
	case !isError || step.refusal == "":
		return ""
	case hasCode(answer, "LOADING") || hasCode(answer, "BUSY") || hasCode(answer, "MASTERDOWN"):
		return string(answer)
	case hasCode(answer, "NOAUTH"):
		return wire.ErrUpstreamRefused
	}
	return step.refusal
}

// turnsAway finds what a server says unasked before it closes a connection
// that it does not want.
func turnsAway(answer []byte) bool {
	return bytes.HasPrefix(answer, []byte("-ERR max number of clients")) || hasCode(answer, "DENIED")
}

// hasCode tells whether an error reply begins with that word.
func hasCode(reply []byte, code string) bool {
	rest, ok := bytes.CutPrefix(reply[1:], []byte(code))
	return ok && len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\r')
}
