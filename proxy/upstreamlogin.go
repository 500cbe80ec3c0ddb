package proxy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// Where the upstream has the users (auth: upstream), it is asked on the
// session's own connection, which then is that user's there. The connection is
// opened with the client's first bytes: only the upstream knows whether it
// takes a client that says nothing for its user default. While it cannot be
// reached, whom it accepted a while ago is accepted once more, and vouched for
// until the connection can be opened.

// A claim is who a client says it is.
type claim struct {
	user    string
	digest  [sha256.Size]byte
	command []byte // its AUTH; nil: it has said nothing
}

// vouched is a claim that the upstream has accepted before, of another
// connection.
type vouched struct {
	claim
	at time.Time
}

// errRefusedClient: the upstream does not accept the client, or no more.
var errRefusedClient = errors.New("the upstream refuses the client's login")

// claims reads AUTH; nil stands for a client that has said nothing.
func (s *session) claims(args [][]byte) claim {
	server := s.server.settings().Config.Upstream.String()
	if args == nil {
		return claim{user: config.DefaultUser, digest: s.server.accepted.digest(server, config.DefaultUser, nil, false)}
	}
	c := claim{user: config.DefaultUser, command: resp.AppendCommand(nil, args...)}
	if len(args) == 3 {
		c.user = string(args[1])
	}
	c.digest = s.server.accepted.digest(server, c.user, args[len(args)-1], true)
	return c
}

// introduce opens the connection for a client of whom nothing is known yet.
func (s *session) introduce() {
	if s.account.Load() != nil || s.upstream.Load() != nil || s.dialError != "" || len(s.in.Unread()) == 0 {
		return
	}
	if !s.server.settings().Users.AtUpstream {
		return
	}
	if s.tryOpen() != "" && !s.closing {
		s.vouchFor(s.claims(nil))
	}
	s.oweLogin()
}

// logInAtUpstream has the upstream judge AUTH and returns its reply.
func (s *session) logInAtUpstream(args [][]byte) string {
	says := s.claims(args)
	if s.upstream.Load() == nil {
		return s.openAs(says)
	}
	first := s.account.Load() == nil
	answer, ok := s.ask(says.command)
	switch {
	case !ok:
		return ""
	case answer[0] != '+':
		reply := string(answer)
		s.refused(says, answer)
		return reply
	}
	s.accept(says)
	if first && s.client.db != 0 {
		if answer, ok = s.ask(resp.AppendCommand(nil, []byte("SELECT"), strconv.AppendInt(nil, int64(s.client.db), 10))); ok && answer[0] != '+' {
			s.closing = true
			return string(answer)
		}
	}
	return wire.OK
}

// openAs is logInAtUpstream without a connection. What was said before stays
// if this is refused.
func (s *session) openAs(says claim) string {
	before := s.vouched
	s.vouched = &vouched{claim: says}
	refusal := s.tryOpen()
	switch {
	case refusal == "":
		return wire.OK
	case s.closing: // the upstream has judged
		s.closing = false
	case s.vouchFor(says):
		return wire.OK
	}
	s.vouched = before
	return refusal
}

// vouchFor accepts a client whom the upstream cannot judge now, if it accepted
// such a login before and not too long ago.
func (s *session) vouchFor(says claim) bool {
	users := s.server.settings().Users
	at, known := s.server.accepted.acceptedAt(says.user, says.digest)
	if !known || time.Since(at) >= users.Cache {
		return false
	}
	s.vouched = &vouched{says, at}
	s.admit(users.Accepted(says.user))
	return true
}

// stillVouchedFor has the upstream asked again when its word is too old, and
// ends the session if it cannot be.
func (s *session) stillVouchedFor(now *config.Settings) bool {
	if s.vouched == nil || time.Since(s.vouched.at) < now.Users.Cache {
		return true
	}
	refusal := s.tryOpen()
	if refusal == "" {
		return true
	}
	s.reply(refusal)
	s.closing = true
	return false
}

// accept makes the client the user whom the upstream takes it for.
func (s *session) accept(says claim) {
	users := s.server.settings().Users
	if users.Cache > 0 {
		s.server.accepted.remember(says.user, says.digest, time.Now())
	}
	s.vouched = nil
	s.admit(users.Accepted(says.user))
}

// refused notes that the upstream does not accept a claim.
func (s *session) refused(says claim, answer []byte) {
	if !hasCode(answer, "WRONGPASS") && !hasCode(answer, "NOAUTH") {
		return
	}
	name := "(unknown)" // it may be a password
	if s.server.accepted.knows(says.user) {
		name = says.user
	}
	s.server.accepted.forget(says.user, says.digest)
	if says.command != nil {
		s.server.refuseLogin(name, s.sock.RemoteAddr())
	}
}

// enterAsClient finds out whom the upstream takes the client for on a new
// connection. If that is nobody, the connection waits as it is for AUTH.
func (s *session) enterAsClient(conn net.Conn, settings *config.Settings, deadline time.Time) (refusal string, err error) {
	says, nobody := s.claims(nil), false
	var steps []loginStep
	if s.vouched != nil {
		says = s.vouched.claim
	}
	if says.command != nil {
		steps = append(steps, loginStep{name: "AUTH", command: says.command})
	}
	steps = append(steps, newLoginStep(wire.ErrUpstreamReply, "PING"))
	judged := false
	refusal, err = logIn(conn, steps, deadline, func(step loginStep, answer []byte) string {
		refusal := step.refusedBy(answer)
		switch isError := answer[0] == '-'; {
		case refusal != "" || !isError:
		case step.name == "AUTH", s.vouched != nil && hasCode(answer, "NOAUTH"):
			s.refused(says, answer)
			judged = true
			return string(answer)
		case hasCode(answer, "NOAUTH"):
			nobody = true
		}
		return refusal
	})
	switch {
	case judged:
		s.closing = true
		return refusal, fmt.Errorf("%w: %.100q", errRefusedClient, refusal)
	case refusal != "" || nobody:
		return refusal, err
	}
	if steps := s.loginSteps(config.UpstreamLogin{}); len(steps) > 1 {
		if refusal, err := logIn(conn, steps, deadline, loginStep.refusedBy); refusal != "" {
			return refusal, err
		}
	}
	s.accept(says)
	return "", nil
}

// stranger is the error for a client that is nobody: that the upstream cannot
// be asked who it is, if that is so.
func (s *session) stranger(otherwise string) string {
	if s.server.settings().Users.AtUpstream && s.upstream.Load() == nil && s.dialError != "" {
		return s.dialError
	}
	return otherwise
}
