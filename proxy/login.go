package proxy

import (
	"errors"
	"fmt"
	"net"
	"time"

	"redlock-proxy/redlock"
)

// loginStep is one command that makes a new upstream connection look like the
// session it is for, and what to tell the client if the upstream refuses it;
// "" means that the refusal does not matter.
type loginStep struct {
	command []byte
	refusal string
}

// loginSteps are the proxy's own credentials, and what was answered here while
// the upstream was closed. The client's credentials are never among them.
func (s *session) loginSteps(login upstreamLogin) []loginStep {
	var steps []loginStep
	add := func(refusal string, args ...string) {
		list := make([][]byte, len(args))
		for i, arg := range args {
			list[i] = []byte(arg)
		}
		steps = append(steps, loginStep{appendCommand(nil, list...), refusal})
	}
	switch {
	case login.user != "":
		add(errorUpstreamRefused, "AUTH", login.user, login.password)
	case login.password != "":
		add(errorUpstreamRefused, "AUTH", login.password)
	}
	if s.client.resp3 {
		add(errorUpstreamProtocol, "HELLO", "3")
	}
	if s.client.db != 0 {
		add(errorUpstreamRefused, "SELECT", fmt.Sprint(s.client.db))
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
	return steps
}

// logIn does the steps on a connection nobody else uses yet. The reply for the
// client is "" when all went well.
func (s *session) logIn(conn net.Conn, login upstreamLogin, deadline time.Time) (refusal string, err error) {
	steps := s.loginSteps(login)
	if len(steps) == 0 {
		return "", nil
	}
	_ = conn.SetDeadline(deadline)
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	var request []byte
	for _, step := range steps {
		request = append(request, step.command...)
	}
	if _, err := conn.Write(request); err != nil {
		return errorUpstreamDown, err
	}
	var scanner redlock.Scanner
	buf := make([]byte, smallBuffer)
	for answered := 0; answered < len(steps); {
		n, err := conn.Read(buf)
		if err != nil {
			return errorUpstreamDown, err
		}
		for unread := buf[:n]; len(unread) > 0; {
			used, done, err := scanner.Scan(unread)
			if err != nil {
				return errorUpstreamReply, err
			}
			unread = unread[used:]
			if !done {
				continue
			}
			if answered == len(steps) {
				return errorUpstreamReply, errors.New("the upstream says more than it was asked")
			}
			if scanner.Kind() == '-' && steps[answered].refusal != "" {
				return steps[answered].refusal, errors.New("the upstream refused a step of the login")
			}
			answered++
		}
	}
	return "", nil
}
