package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A Login turns a new connection into a client's connection. It logs in the proxy or
// the client. Then it sets what the client has set while there was no connection.
type Login struct {
	User, Password string // the proxy's own; none if both are ""
	Claim          *Claim // replaces User and Password if the upstream has the users
	ClientSettings
	AsksID   bool     // the client uses its id, so the connection is asked for its own
	Tracking []string // the words of CLIENT TRACKING, or nil

	id       []byte // the answer to CLIENT ID
	unknown  bool   // the upstream has not identified the client
	rejected bool   // it does not accept the Claim
}

// A Claim is a client's own login.
type Claim struct {
	Auth []byte // the client's command; nil: it sent none, but the upstream may have a default user
	Sure bool   // the client was told that it is logged in, so a NOAUTH is a refusal
}

// A Failure is the reason why there is no connection.
type Failure struct {
	Reply    wire.Error // for the client
	Rejected bool       // the upstream does not accept the Claim, and Reply is its own answer
	Err      error      // for the log
}

// loginStep is one command of a login. refusal is the reply to the client if the
// upstream refuses the command. If it is "", the refusal does not matter.
type loginStep struct {
	name    string
	command []byte
	refusal wire.Error
}

// refusalKept is the number of bytes kept of the answer to a step.
const refusalKept = 4 << 10

// steps are all commands of the login. One is certain to be answered whatever the client may do: the AUTH of a
// Claim, or a PING. So an upstream that accepts connections but answers nothing, or speaks no RESP, is detected before
// it gets a client's command. For a client without a login the PING comes first and shows whether the upstream
// has a default user. Clients with MONITOR see it.
func (l *Login) steps() (steps []loginStep) {
	add := func(refusal wire.Error, args ...string) {
		steps = append(steps, loginStep{args[0], resp.AppendCommand(nil, args...), refusal})
	}
	setting := func(set bool, args ...string) {
		if set {
			add("", append([]string{"CLIENT"}, args...)...)
		}
	}
	switch {
	case l.Claim != nil && l.Claim.Auth != nil:
		steps = append(steps, loginStep{name: "AUTH", command: l.Claim.Auth})
	case l.Claim != nil:
		add(wire.ErrUpstreamReply, "PING")
	case l.User != "":
		add(wire.ErrUpstreamRefused, "AUTH", l.User, l.Password)
	case l.Password != "":
		add(wire.ErrUpstreamRefused, "AUTH", l.Password)
	}
	if l.Version == wire.RESP3 {
		add(wire.ErrUpstreamProtocol, "HELLO", "3")
	}
	if l.DB != 0 {
		add(wire.ErrUpstreamRefused, "SELECT", strconv.Itoa(l.DB))
	}
	setting(l.AsksID, "ID")
	setting(l.Name != "", "SETNAME", l.Name)
	setting(l.LibName != "", "SETINFO", "lib-name", l.LibName)
	setting(l.LibVersion != "", "SETINFO", "lib-ver", l.LibVersion)
	setting(l.NoEvict, "NO-EVICT", "on")
	setting(l.NoTouch, "NO-TOUCH", "on")
	if l.Tracking != nil {
		add("", l.Tracking...)
	}
	if l.Claim == nil {
		add(wire.ErrUpstreamReply, "PING")
	}
	return steps
}

// do logs in on a connection that nobody else uses yet. It sends all steps at once. known tells whether the
// upstream has identified the client. If not, it has set nothing, and waits for the client's own login.
func (l *Login) do(conn net.Conn, deadline time.Time) (known bool, failure *Failure) {
	_ = conn.SetDeadline(deadline)
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	var request []byte
	steps := l.steps()
	for _, step := range steps {
		request = append(request, step.command...)
	}
	if _, err := conn.Write(request); err != nil {
		return false, &Failure{Reply: wire.ErrUpstreamDown, Err: err}
	}
	var refusal wire.Error
	err := readAnswers(conn, len(steps), func(i int, answer []byte) error {
		if refusal = l.judge(i, steps[i], answer); refusal != "" {
			return fmt.Errorf("it answers %s with %.200q", steps[i].name, answer)
		}
		return nil
	})
	switch {
	case err == nil:
		return !l.unknown, nil
	case refusal != "":
	case errors.Is(err, errNoAnswers):
		refusal = wire.ErrUpstreamReply
	default:
		refusal = wire.ErrUpstreamDown
	}
	return false, &Failure{Reply: refusal, Rejected: l.rejected, Err: err}
}

// judge judges the answer to a step. It returns the reply for the client, or "" to go on. NOAUTH to any step of the
// proxy's own login means that its credentials are missing. The client must not take it for a question to
// itself, because AUTH is the proxy's own command.
func (l *Login) judge(i int, step loginStep, answer []byte) (refusal wire.Error) {
	if step.name == "CLIENT" && answer[0] == ':' {
		l.id = bytes.Clone(answer)
	}
	noAuth := string(resp.ErrorCode(answer)) == "NOAUTH"
	refusal = step.refusedBy(answer)
	switch {
	case l.Claim == nil && noAuth:
		return wire.ErrUpstreamRefused
	case l.unknown:
		return ""
	case refusal != "" || l.Claim == nil || i > 0 || answer[0] != '-':
		return refusal
	case step.name == "AUTH" || l.Claim.Sure && noAuth:
		l.rejected = true
		return wire.Error(answer)
	}
	l.unknown = noAuth
	return ""
}

// errNoAnswers means that a server's replies cannot be the answers to the commands.
var errNoAnswers = errors.New("its replies do not answer the commands")

// readAnswers reads n replies from a connection that nobody else uses. It gives judge
// the first refusalKept bytes of each, and stops if judge returns an error.
func readAnswers(from net.Conn, n int, judge func(i int, answer []byte) error) error {
	var scanner resp.Scanner
	var answer []byte
	buf := make([]byte, 1<<10)
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
			if scanner.Kind() != '>' { // a push answers nothing
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

// refusedBy judges the answer to a step by its first refusalKept bytes. It returns the
// reply for the client, or "" to go on. If the server is loading, busy with a script or
// full, the client gets the server's own words.
func (step loginStep) refusedBy(answer []byte) (refusal wire.Error) {
	isError, code := answer[0] == '-', string(resp.ErrorCode(answer))
	switch {
	case isError && !bytes.HasSuffix(answer, []byte("\r\n")): // longer than refusalKept
		return wire.ErrUpstreamReply
	case isError && (code == "DENIED" || bytes.HasPrefix(answer, []byte("-ERR max number of clients"))):
		// The server sends these unasked, before it closes a connection.
		return wire.Error(answer)
	case step.name == "PING":
		// Any other error shows that the server answers. It will judge the client's
		// command itself.
		if !isError && string(answer) != wire.Pong {
			return step.refusal
		}
		return ""
	case !isError || step.refusal == "":
		return ""
	case code == "LOADING" || code == "BUSY" || code == "MASTERDOWN":
		return wire.Error(answer)
	case code == "NOAUTH":
		return wire.ErrUpstreamRefused
	}
	return step.refusal
}
