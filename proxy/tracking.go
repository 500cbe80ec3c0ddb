package proxy

import (
	"bytes"
	"slices"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// CLIENT TRACKING goes to the upstream, which tells of the upstream's keys. For
// lock keys the proxy does what one Redis would: it remembers which of them a
// client has read, and tells it once when the masters say that one was changed.
// With REDIRECT the upstream alone is asked, for it alone knows the other client.

// tracking is a session's own side of CLIENT TRACKING.
type tracking struct {
	mode *pubsub.Mode // nil: off

	// caching: CLIENT CACHING made the next command an exception. It is held
	// back until it is known which side that command goes to; told says that the
	// upstream knows.
	caching, told bool

	present  []string // keys of the lock command under way
	own      *pubsub.OwnCommand
	answered []string // keys of lock commands whose replies are pending
}

// command is CLIENT TRACKING as an upstream is told of it, nil if it is off.
func (t *tracking) command() [][]byte {
	if t.mode == nil {
		return nil
	}
	words := []string{"CLIENT", "TRACKING", "ON"}
	for _, option := range []struct {
		set  bool
		word string
	}{{t.mode.Broadcast, "BCAST"}, {t.mode.OptIn, "OPTIN"}, {t.mode.OptOut, "OPTOUT"}, {t.mode.NoLoop, "NOLOOP"}} {
		if option.set {
			words = append(words, option.word)
		}
	}
	for _, prefix := range t.mode.Prefixes {
		words = append(words, "PREFIX", prefix)
	}
	return bytesOf(words)
}

// cachingCommand is what CLIENT CACHING said.
func (t *tracking) cachingCommand() [][]byte {
	if t.mode.OptIn {
		return bytesOf([]string{"CLIENT", "CACHING", "YES"})
	}
	return bytesOf([]string{"CLIENT", "CACHING", "NO"})
}

// remembers tells whether the keys that the next command reads are to be
// remembered.
func (t *tracking) remembers() bool {
	switch {
	case t.mode == nil || t.mode.Broadcast || t.mode.Redirected:
		return false
	case t.mode.OptIn:
		return t.caching
	}
	return !t.caching
}

// performTracking is CLIENT TRACKING. Without an upstream it is answered here,
// so that clients which ask for it when they connect can take locks.
func (s *session) performTracking(cmd wire.Command, spec *command.Spec) {
	if !s.settle() || s.refusedAsRestricted("client|tracking") {
		return
	}
	if !spec.ArityOK(len(cmd.Args)) {
		s.reply(wire.ErrArity("client|tracking"))
		return
	}
	next, refusal := parseTracking(cmd.Args[2:], s.tracking.mode)
	if unreachable := s.tryOpen(); unreachable == "" {
		reply, ok := s.ask(asArray(cmd))
		if !ok {
			return
		}
		if reply[0] == '+' && refusal == "" {
			s.track(next)
		}
		s.replyBytes(reply)
		return
	} else if refusal == "" && next != nil && next.Redirected {
		refusal = unreachable
	}
	if refusal != "" {
		s.reply(refusal)
		return
	}
	s.track(next)
	s.reply(wire.OK)
}

// track makes the session's side what the client was told, or is about to be.
func (s *session) track(next *pubsub.Mode) {
	s.tracking.mode, s.tracking.caching = next, false
	if s.server.cfg.subscribes == nil || !s.hearsLocks() {
		return
	}
	if next == nil || next.Redirected {
		if l := s.listening.Load(); l != nil {
			l.Track(nil)
			l.ForgetKeys()
			s.leaveUnheard()
		}
		return
	}
	l := s.listen()
	l.Track(next)
	if !next.Broadcast || s.ownRules(s.account.Load(), s.server.settings().Router.Rules).DenySome() {
		return // nobody is told of keys by their beginnings who may not know of all of them
	}
	prefixes := next.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	s.send()
	s.watch.begin()
	defer s.watch.end()
	l.TrackPrefixes(s.ctx, prefixes)
}

// performCaching is CLIENT CACHING. It is for the next command, of which
// nobody knows yet where it goes; so it is answered here.
func (s *session) performCaching(cmd wire.Command, spec *command.Spec) {
	if !s.settle() || s.refusedAsRestricted("client|caching") {
		return
	}
	t := &s.tracking
	yes, no := false, false
	if spec.ArityOK(len(cmd.Args)) {
		yes, no = wire.IsWord(cmd.Args[2], "YES"), wire.IsWord(cmd.Args[2], "NO")
	}
	switch {
	case !spec.ArityOK(len(cmd.Args)):
		s.reply(wire.ErrArity("client|caching"))
	case t.mode == nil:
		s.reply(wire.ErrCachingOff)
	case yes && !t.mode.OptIn:
		s.reply(wire.ErrCachingYes)
	case no && !t.mode.OptOut:
		s.reply(wire.ErrCachingNo)
	case !yes && !no:
		s.reply(wire.ErrSyntax)
	default:
		t.caching, t.told = true, false
		s.reply(wire.OK)
	}
}

// tellCaching passes CLIENT CACHING on before a command that the upstream
// gets. The connection is open.
func (s *session) tellCaching() {
	t := &s.tracking
	if !t.caching || t.told || s.isPipe() {
		return
	}
	t.told = true
	s.send()
	s.owe(debt{silent: true, left: 1})
	s.prefix = resp.AppendCommand(s.prefix, t.cachingCommand()...)
}

// trackLocks remembers the keys of lock commands that are about to be put to
// the masters, so that no change from then on is missed. It may be called
// while the client is watched.
func (s *session) trackLocks(calls ...lockCall) {
	t := &s.tracking
	l := s.listening.Load()
	if t.mode == nil || l == nil || t.mode.Redirected {
		return
	}
	t.present = nil
	reads := false
	for _, call := range calls {
		for _, key := range lockKeys(call) {
			if text := string(key); !slices.Contains(t.present, text) {
				t.present = append(t.present, text)
			}
		}
		reads = reads || !call.route.Spec.Write()
	}
	if t.mode.NoLoop {
		t.own = newOwnCommand(calls)
	}
	remember := t.remembers() && reads
	l.Begin(t.present, remember)
	if remember {
		l.TrackKeys(s.ctx, t.present)
	}
}

// afterCommand is called when a command's reply is pending or will come from
// the upstream.
func (s *session) afterCommand(name string) {
	t := &s.tracking
	if t.mode == nil {
		return
	}
	if len(t.present) > 0 {
		if t.own != nil && didNothing(s.lockReply) {
			t.own = nil
		}
		if l := s.listening.Load(); l != nil {
			l.Answered(t.present, t.own)
			t.answered = append(t.answered, t.present...)
		}
		t.present, t.own = nil, nil
	}
	if t.caching && s.transaction.state == transactionNone && !isClientCommand(name) {
		t.caching = false
	}
}

func isClientCommand(name string) bool { return len(name) >= 6 && name[:6] == "client" }

// repliesSent is called when no reply is pending any more: what was kept back
// so as not to come before them may follow.
func (s *session) repliesSent() {
	t := &s.tracking
	if len(t.answered) == 0 {
		return
	}
	if l := s.listening.Load(); l != nil {
		l.Replied(t.answered)
	}
	t.answered = t.answered[:0]
}

func bytesOf(words []string) [][]byte {
	list := make([][]byte, len(words))
	for i, word := range words {
		list[i] = []byte(word)
	}
	return list
}

const (
	// ownValueLeast is how long a value must be not to be taken for a constant
	// that others store too.
	ownValueLeast = 16
	// ownValuesMost bounds what is kept of one command.
	ownValuesMost = 1024
)

// newOwnCommand keeps what may have been stored, nil if there is nothing that
// tells this client from others.
func newOwnCommand(calls []lockCall) *pubsub.OwnCommand {
	var values [][]byte
	db, size := 0, 0
	for _, call := range calls {
		db = call.db
		for i, arg := range call.args {
			isText := i == 1 && call.route.Spec.Is(command.Script)
			if i == 0 || isText || len(arg) < ownValueLeast || slices.Contains(call.route.Keys, i) {
				continue
			}
			if size += len(arg); size > ownValuesMost {
				return nil
			}
			values = append(values, bytes.Clone(arg))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return pubsub.Brought(db, values)
}

// didNothing recognises the replies by which commands say that they changed
// nothing. Where one of them says the opposite, as Redisson's nil does, its
// client is told once too often.
func didNothing(reply []byte) bool {
	switch string(reply) {
	case "$-1\r\n", "*-1\r\n", "_\r\n", ":0\r\n", "#f\r\n":
		return true
	}
	return resp.IsError(reply)
}
