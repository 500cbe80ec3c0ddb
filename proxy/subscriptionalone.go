package proxy

import "github.com/tidwall/redcon"

// Without an upstream the proxy itself confirms subscriptions to the locks'
// channels, so that clients can wait for locks. An upstream that is opened
// later is told of them before anything else.

// subscribeHere confirms each name. What the masters have published since
// they were asked may follow at once.
func (s *session) subscribeHere(of family, names []string) {
	l := s.listening.Load()
	l.rejoinAt.Store(s.server.upstreamOpened.Load() + 1)
	s.flushWith(func() {
		for _, name := range names {
			l.confirm(confirmation{family: of, adds: true, names: []string{name}})
			s.appendConfirmation(of, true, &name, l.count())
		}
	})
}

// unsubscribeHere confirms each name, or each that is subscribed to where none
// is given.
func (s *session) unsubscribeHere(of family, names []string) {
	l := s.listening.Load()
	all := len(names) == 0
	if all && l != nil {
		names = l.confirmed(of)
	}
	s.flushWith(func() {
		for _, name := range names {
			if l != nil {
				l.confirm(confirmation{family: of, names: []string{name}})
			}
			s.appendConfirmation(of, false, &name, l.count())
		}
		if len(names) == 0 {
			s.appendConfirmation(of, false, nil, l.count())
		}
	})
	s.leaveUnheard()
}

// appendConfirmation adds a confirmation to the pending replies. They reach
// the client whatever CLIENT REPLY said, as with Redis.
func (s *session) appendConfirmation(of family, adds bool, name *string, total int) {
	s.pending = appendPushHeader(s.pending, 3, s.client.resp3)
	s.pending = redcon.AppendBulkString(s.pending, of.command(adds))
	if name == nil {
		s.pending = appendNull(s.pending, s.client.resp3)
	} else {
		s.pending = redcon.AppendBulkString(s.pending, *name)
	}
	s.pending = redcon.AppendInt(s.pending, int64(total))
}

// restrictedHere tells whether a command is to be refused because the client
// is in RESP2's subscribe mode, where no upstream does that.
func (s *session) restrictedHere(name string) bool {
	return s.listening.Load() != nil && s.upstream.Load() == nil && !allowedInSubscribeMode(name) && s.restricted()
}

func allowedInSubscribeMode(name string) bool {
	if _, _, ok := confirmationOf([]byte(name)); ok {
		return true
	}
	return name == "ping" || name == "quit" || name == "reset"
}

// replay tells an upstream that has just been opened what was answered here
// while there was none. The client has seen the replies, so it does not see
// the upstream's.
func (s *session) replay(up *upstream) {
	l := s.listening.Load()
	if l == nil {
		return
	}
	l.rejoinAt.Store(0)
	var request []byte
	if words := s.tracking.command(); words != nil {
		up.owed.add(debt{silent: true, left: 1})
		request = appendCommand(request, words...)
	}
	for _, of := range []family{familyChannel, familyPattern} {
		names := l.confirmed(of)
		if len(names) == 0 {
			continue
		}
		words := [][]byte{[]byte(of.command(true))}
		for _, name := range names {
			words = append(words, []byte(name))
		}
		up.owed.add(debt{kind: debtConfirmations, family: of, adds: true, left: len(names), silent: true, replayed: true})
		request = appendCommand(request, words...)
	}
	if len(request) > 0 {
		up.write(request)
	}
}

// mayRejoin tells whether the upstream has been reached since the session's
// subscriptions were confirmed without it. Any goroutine may ask.
func (s *session) mayRejoin() bool {
	l := s.listening.Load()
	if l == nil || s.upstream.Load() != nil {
		return false
	}
	at := l.rejoinAt.Load()
	return at > 0 && s.server.upstreamOpened.Load() >= at
}

// rejoin opens the upstream for a session that waits for messages and would
// not open it for anything else: some are published there.
func (s *session) rejoin() {
	if s.mayRejoin() && s.tryOpen() != "" {
		s.listening.Load().rejoinAt.Store(s.server.upstreamOpened.Load() + 1)
		s.dialError = ""
	}
}

// performPublishAlone publishes on the masters what is meant for a lock's
// channel while the upstream is away: every proxy's subscribers listen there.
// It reports false where the upstream is to be asked.
func (s *session) performPublishAlone(cmd command, route route) bool {
	if s.upstream.Load() != nil || s.server.cfg.subscribes == nil || len(cmd.args) != 3 {
		return false
	}
	if !s.belongsToLocks(string(cmd.args[1])) || s.tryOpen() == "" {
		return false
	}
	s.performOnLocks("publish", cmd.args, route)
	return true
}
