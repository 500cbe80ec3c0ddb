package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

const (
	// dialPatience bounds reaching the upstream, login included. A command
	// waits for it, so it is shorter than clients' own usual timeouts.
	dialPatience = 3 * time.Second
	// onePrefix is how long a held transaction may be to be sent in one write
	// with what follows it.
	onePrefix = 16 << 10
)

// performOnUpstream forwards a command as it came and enters what the
// upstream will owe for it.
func (s *session) performOnUpstream(name string, cmd wire.Command, spec *command.Spec) {
	switch name {
	case "monitor":
		s.forward(cmd, debt{kind: debtStream, left: 1})
		s.monitoring = s.settle() && s.isPipe()
	case "watch":
		s.forward(cmd, debt{left: 1})
		s.watched.upstream = s.watched.upstream || spec.ArityOK(len(cmd.Args)) && s.upstream.Load() != nil
	case "eval", "eval_ro":
		s.registerScript(name, cmd.Args)
		s.forward(cmd, debt{left: 1})
	default:
		switch {
		case spec.Is(command.Subscription):
			s.performSubscription(name, cmd)
		case spec == nil && isForgedRequest(cmd.Args[0]):
			s.closing = true
		default:
			s.forwardForReply(cmd, spec)
		}
	}
}

// forwardForReply forwards what has one reply and changes nothing here.
func (s *session) forwardForReply(cmd wire.Command, spec *command.Spec) {
	s.forward(cmd, debt{left: 1})
	s.mayBlock = s.mayBlock || spec == nil || spec.Blocking()
}

// isForgedRequest finds HTTP sent to us through somebody's browser; Redis
// closes such connections too, before the body can hold commands.
func isForgedRequest(name []byte) bool {
	return wire.IsWord(name, "POST") || wire.IsWord(name, "HOST:")
}

// forward adds the command last taken from the input to what is sent next, and
// nothing that stands between it and the one before. A debt of nothing is for what
// is never answered.
func (s *session) forward(cmd wire.Command, owes debt) {
	if !s.open() {
		return
	}
	s.tellCaching()
	if from := s.in.Offset() - len(cmd.Raw); s.batch.from < s.batch.to && s.batch.to != from {
		s.send()
	}
	owes.silent = s.silent
	s.owe(owes)
	s.forwarded++
	if cmd.Raw[0] != '*' {
		if s.batch.from < s.batch.to {
			s.send()
		}
		s.prefix = append(s.prefix, asArray(cmd)...)
		return
	}
	if s.batch.from == s.batch.to {
		s.batch.from = s.in.Offset() - len(cmd.Raw)
	}
	s.batch.to = s.in.Offset()
}

// asArray is the command as it came, or, if that was inline, as an array:
// servers other than Redis itself, such as the embedded one, know no other.
func asArray(cmd wire.Command) []byte {
	if cmd.Raw[0] == '*' {
		return cmd.Raw
	}
	return resp.AppendCommand(nil, cmd.Args...)
}

// owe enters a debt, ordinary ones together at the next send.
func (s *session) owe(d debt) {
	if d.kind == debtReply && d.silent == s.owes.silent {
		s.owes.left += d.left
		return
	}
	s.enterDebts()
	if d.kind == debtReply {
		s.owes = d
		return
	}
	s.upstream.Load().owed.add(d)
}

func (s *session) enterDebts() {
	if s.owes.left > 0 {
		s.upstream.Load().owed.add(s.owes)
	}
	s.owes = debt{}
}

// send writes what was forwarded since the last send, in one write, after the
// replies that come before it.
func (s *session) send() {
	if s.batch.to == s.batch.from && len(s.prefix) == 0 {
		return
	}
	s.flush()
	s.enterDebts()
	s.server.cfg.metrics.Forwarded(s.forwarded)
	s.forwarded = 0
	up := s.upstream.Load()
	commands := s.in.Between(s.batch.from, s.batch.to)
	s.batch.from, s.batch.to = 0, 0
	if len(s.prefix) > 0 {
		if len(s.prefix)+len(commands) <= onePrefix {
			s.prefix, commands = append(s.prefix, commands...), nil
		}
		up.write(s.prefix)
		s.prefix = s.prefix[:0]
		if cap(s.prefix) > onePrefix {
			s.prefix = nil
		}
	}
	if len(commands) > 0 {
		up.write(commands)
	}
}

// settle waits until all that was forwarded is answered and its replies are
// with the client. It reports false when the session must end instead.
func (s *session) settle() bool {
	up := s.upstream.Load()
	if up == nil {
		return true
	}
	s.send()
	if !up.owed.settled(false) {
		s.watch.begin()
		settled := up.wait()
		s.watch.end()
		if !settled {
			s.closing = true
			return false
		}
	}
	s.mayBlock = false
	return true
}

// ask sends a command of the proxy's own making and returns the upstream's
// reply, good until the next ask. The connection is open. ok is false when the
// session must end instead.
func (s *session) ask(request []byte) (reply []byte, ok bool) {
	return s.askWhile(request, nil)
}

// askWhile is ask with something to do until the reply is there.
func (s *session) askWhile(request []byte, meanwhile func()) (reply []byte, ok bool) {
	reply, whole, ok := s.askWhole(request, 1, meanwhile)
	if ok && !whole {
		reply = []byte(wire.ErrUpstreamReply)
	}
	return reply, ok
}

// askWhole is askWhile for some commands in one, and tells whether their replies are
// whole: those that are too long to be kept were answered all the same.
func (s *session) askWhole(request []byte, commands int, meanwhile func()) (reply []byte, whole, ok bool) {
	if !s.settle() {
		return nil, false, false
	}
	up := s.upstream.Load()
	up.owed.add(debt{capture: true, left: commands})
	up.write(request)
	if meanwhile != nil {
		meanwhile()
	}
	if !s.settle() {
		return nil, false, false
	}
	reply, whole = up.takeCapture()
	return reply, whole && len(reply) > 0, true
}

// open sees to it that there is an upstream connection, and answers the
// command with an error where there cannot be one.
func (s *session) open() bool {
	if s.upstream.Load() != nil {
		return true
	}
	if refusal := s.tryOpen(); refusal != "" {
		s.reply(refusal)
		return false
	}
	return true
}

// tryOpen returns the error reply for what keeps the upstream from being used,
// "" if nothing does.
func (s *session) tryOpen() (refusal string) {
	settings := s.server.settings()
	switch {
	case s.upstream.Load() != nil:
		return ""
	case settings.DialUpstream == nil:
		return wire.ErrUpstreamNone
	case s.dialError != "":
		return s.dialError
	}
	s.watch.begin()
	defer s.watch.end()
	// Not s.ctx: a client that only half-closed still wants its answers.
	ctx, cancel := context.WithTimeout(s.server.running, dialPatience)
	defer cancel()
	dialled, err := settings.DialUpstream(ctx)
	if err != nil {
		s.dialFailed(wire.ErrUpstreamDown, err)
		return s.dialError
	}
	deadline, _ := ctx.Deadline()
	if refusal, err := s.enter(dialled, settings, deadline); refusal != "" {
		_ = dialled.Close()
		if !errors.Is(err, errRefusedClient) {
			s.dialFailed(refusal, err)
		}
		return refusal
	}
	up := &upstream{
		conn:     conn.NewSocket(dialled, &s.server.clock),
		client:   s.out,
		owed:     newOwed(s.client.version),
		onEnd:    s.sock.Wake,
		onLost:   s.clientLeft,
		onBroken: s.upstreamBroken,
		onPanic:  s.panicked,
		captures: settings.Limits.Bulk + conn.SmallBuffer,
		memory:   s.server.memory,
		onTold:   s.toldOfSubscription,
	}
	up.start()
	s.upstream.Store(up)
	s.replayTracking(up)
	s.server.upstreamOpened.Add(1)
	s.endIfOutdated()
	return ""
}

func (s *session) dialFailed(refusal string, err error) {
	s.dialError = refusal
	s.server.cfg.metrics.UpstreamDialFailed()
	s.server.cfg.log.Warn("a client's command found no upstream", slog.Any("error", err))
}

// upstreamBroken is the copier's: the connection ends, and the session with it.
func (s *session) upstreamBroken(why error) {
	s.server.cfg.metrics.UpstreamProtocolError()
	s.server.cfg.log.Error("a client is disconnected because the upstream sends what is no reply to its commands", slog.Any("error", why))
}

func (s *session) isPipe() bool {
	up := s.upstream.Load()
	return up != nil && up.owed.isPipe()
}

// performInPipe passes commands on in a connection whose replies cannot be
// counted any more.
func (s *session) performInPipe(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "reset" && len(cmd.Args) == 1:
		s.reset()
	case to.Plane != route.Upstream && s.monitoring:
		s.replyAtOnce(wire.ErrMonitorKeyspace)
	case to.Plane != route.Upstream || s.subscribesToLocks(name, cmd.Args):
		s.replyAtOnce(wire.ErrLockInPipe)
	case s.server.settings().Users.AtUpstream: // who the client is there does not matter here until RESET
		s.forward(cmd, debt{})
	case name == "auth":
		s.replyAtOnce(s.authenticate(cmd.Args))
	case logsIn(name, cmd.Args):
		s.replyAtOnce(wire.ErrHelloInPipe)
	default:
		s.forward(cmd, debt{})
	}
}

// replyAtOnce answers in a pipe, where there is no turn to wait for.
func (s *session) replyAtOnce(text string) {
	s.send()
	s.pending = append(s.pending, text...)
	s.flush()
}
