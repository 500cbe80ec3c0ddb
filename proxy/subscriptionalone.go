package proxy

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// Without an upstream the proxy itself confirms subscriptions to the locks'
// channels, so that clients can wait for locks. When the upstream is back such a
// client is disconnected, lest it misses what is published there: its library
// connects again and subscribes anew, as after a restart of its one Redis.

// subscribeHere confirms each name. What the masters have published since
// they were asked may follow at once.
func (s *session) subscribeHere(of wire.Family, names []string) {
	l := s.listening.Load()
	s.outdatedAt.Store(s.server.upstreamOpened.Load() + 1)
	s.flushWith(func() {
		for _, name := range names {
			l.Confirm(wire.Confirmation{Family: of, Adds: true, Names: []string{name}})
			s.appendConfirmation(of, true, &name, l.Count())
		}
	})
}

// unsubscribeHere confirms each name, or each that is subscribed to where none
// is given.
func (s *session) unsubscribeHere(of wire.Family, names []string) {
	l := s.listening.Load()
	all := len(names) == 0
	if all && l != nil {
		names = l.Confirmed(of)
	}
	s.flushWith(func() {
		for _, name := range names {
			if l != nil {
				l.Confirm(wire.Confirmation{Family: of, Names: []string{name}})
			}
			s.appendConfirmation(of, false, &name, l.Count())
		}
		if len(names) == 0 {
			s.appendConfirmation(of, false, nil, l.Count())
		}
	})
	s.leaveUnheard()
}

// appendConfirmation adds a confirmation to the pending replies. They reach
// the client whatever CLIENT REPLY said, as with Redis.
func (s *session) appendConfirmation(of wire.Family, adds bool, name *string, total int) {
	s.pending = wire.AppendPushHeader(s.pending, 3, s.client.version)
	s.pending = redcon.AppendBulkString(s.pending, of.Command(adds))
	if name == nil {
		s.pending = wire.AppendNull(s.pending, s.client.version)
	} else {
		s.pending = redcon.AppendBulkString(s.pending, *name)
	}
	s.pending = redcon.AppendInt(s.pending, int64(total))
}

// restrictedHere tells whether a command is to be refused because the client
// is in RESP2's subscribe mode, where no upstream does that.
func (s *session) restrictedHere(spec *command.Spec) bool {
	return s.listening.Load() != nil && s.upstream.Load() == nil && !spec.Is(command.InSubscribeMode) && s.restricted()
}

// replayTracking tells an upstream that has just been opened that the client
// tracks keys, which was answered here while there was none. The client has
// seen the reply, so it does not see the upstream's.
func (s *session) replayTracking(up *upstream) {
	if words := s.tracking.command(); words != nil && s.listening.Load() != nil {
		up.owed.add(debt{silent: true, left: 1})
		up.write(resp.AppendCommand(nil, words...))
	}
}

// endIfOutdated ends a session whose subscriptions were confirmed without the
// upstream, once that has been reached. Any goroutine may ask.
func (s *session) endIfOutdated() {
	l := s.listening.Load()
	if l == nil || s.missed.Load() {
		return
	}
	if at := s.outdatedAt.Load(); at > 0 && s.server.upstreamOpened.Load() >= at && l.Subscribed() {
		s.missMessages("the upstream is back and does not know its subscriptions")
	}
}

// performPublishAlone publishes on the masters what is meant for a lock's
// channel while the upstream is away: every proxy's subscribers listen there.
// It reports false where the upstream is to be asked.
func (s *session) performPublishAlone(cmd wire.Command, to route.Route) bool {
	if s.upstream.Load() != nil || s.server.cfg.subscribes == nil || len(cmd.Args) != 3 {
		return false
	}
	if !s.belongsToLocks(string(cmd.Args[1])) || s.tryOpen() == "" {
		return false
	}
	s.performOnLocks("publish", cmd.Args, to)
	return true
}
