package proxy

import (
	"context"
	"log/slog"
	"slices"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// A client's subscriptions are the upstream's, whose confirmations and counts
// it sees. A script on lock keys publishes on the masters, though, and nowhere
// else, so a channel that may carry wake-ups is subscribed to there as well,
// and before the upstream confirms: a client tries the lock once more after
// that confirmation and then relies on being told.

// performSubscription is the SUBSCRIBE and UNSUBSCRIBE families. Sharded
// channels are the upstream's alone.
func (s *session) performSubscription(name string, cmd wire.Command) {
	of, adds, _ := wire.ConfirmationOf([]byte(name))
	switch {
	case of == wire.FamilyShard || s.server.cfg.subscribes == nil:
		s.forwardSubscription(of, adds, cmd, nil)
	case adds:
		s.subscribe(of, cmd)
	default:
		s.unsubscribe(of, cmd)
	}
}

func (s *session) subscribe(of wire.Family, cmd wire.Command) {
	names := textsOf(cmd.Args[1:])
	if !slices.ContainsFunc(names, func(name string) bool { return s.carriesWakeUps(of, name) }) {
		s.forwardSubscription(of, true, cmd, nil)
		return
	}
	if !s.settle() {
		return
	}
	if reached := s.subscriptionLimit(of, names); reached != "" {
		s.server.cfg.metrics.LimitReached(string(reached))
		s.reply(wire.ErrSubscriptions)
		return
	}
	refusal := s.tryOpen()
	if refusal != "" && slices.ContainsFunc(names, func(name string) bool { return !s.belongsToLocks(name) }) {
		s.reply(refusal)
		return
	}
	s.listenTo(of, names)
	if refusal != "" {
		s.subscribeHere(of, names)
		return
	}
	s.forwardSubscription(of, true, cmd, names)
}

// unsubscribe is answered here where there is no upstream connection: nothing
// can be subscribed to there.
func (s *session) unsubscribe(of wire.Family, cmd wire.Command) {
	names := textsOf(cmd.Args[1:])
	switch {
	case s.upstream.Load() == nil:
		s.unsubscribeHere(of, names)
	case s.listening.Load() == nil:
		s.forwardSubscription(of, false, cmd, nil)
	default:
		s.forwardSubscription(of, false, cmd, names)
		if s.settle() {
			s.leaveUnheard()
		}
	}
}

// forwardSubscription lets the upstream answer. names are those in the command
// if the session is to learn what becomes of each.
func (s *session) forwardSubscription(of wire.Family, adds bool, cmd wire.Command, names []string) {
	left := len(cmd.Args) - 1
	if adds {
		left = max(left, 1) // the error for their lack
	}
	s.forward(cmd, debt{kind: debtConfirmations, family: of, adds: adds, left: left, names: names})
}

// carriesWakeUps tells whether something that is published on the masters may
// be meant for who subscribes to this channel or pattern. Whether a pattern
// matches a lock's channel cannot be told from its looks.
func (s *session) carriesWakeUps(of wire.Family, name string) bool {
	if !s.hearsLocks() || pubsub.IsNotification([]byte(name)) {
		return false
	}
	own := s.ownRules(s.account.Load(), s.server.settings().Router.Rules)
	return of == wire.FamilyPattern && !own.DenySome() || own.CoversChannel([]byte(name))
}

// belongsToLocks: the channel, or every channel that such a pattern is meant
// for, is a lock's.
func (s *session) belongsToLocks(name string) bool {
	return s.server.settings().Router.Rules.CoversChannel([]byte(name))
}

// subscribesToLocks finds a command that cannot be had where the upstream's
// confirmations are not seen: what scripts publish could not be passed on.
func (s *session) subscribesToLocks(name string, args [][]byte) bool {
	of, adds, ok := wire.ConfirmationOf([]byte(name))
	return ok && adds && of != wire.FamilyShard && s.server.cfg.subscribes != nil &&
		slices.ContainsFunc(args[1:], s.server.settings().Router.Rules.CoversChannel)
}

// subscriptionLimit is the limit that keeps the masters from being asked for
// names too; "": none does.
func (s *session) subscriptionLimit(of wire.Family, names []string) config.LimitName {
	count, size := 0, 0
	l := s.listening.Load()
	if l != nil {
		count = l.Asked()
	}
	for _, name := range names {
		if l != nil && l.Asks(of, name) {
			continue
		}
		if s.carriesWakeUps(of, name) {
			count++
			size += len(name) + pubsub.NameOverhead
		}
	}
	switch {
	case size > 0 && count > s.server.settings().Limits.Subscriptions:
		return config.LimitSubscriptions
	case !s.server.memory.HasRoom(size):
		return config.LimitMemory
	}
	return ""
}

// listenTo returns when the masters are subscribed to. What comes is kept from
// the client until the subscription is confirmed to it.
func (s *session) listenTo(of wire.Family, names []string) {
	l := s.listen()
	var missing []string
	for _, name := range names {
		if !s.carriesWakeUps(of, name) {
			continue
		}
		if l.Expect(of, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return
	}
	s.send()
	s.watch.begin()
	defer s.watch.end()
	l.Ask(s.ctx, of, missing...)
}

// leaveUnheard ends at the masters what the client has ended. Nothing is owed,
// so that every confirmation has been seen.
func (s *session) leaveUnheard() {
	if l := s.listening.Load(); l != nil && l.LeaveUnheard() {
		s.stopListening()
	}
}

// toldOfSubscription is called with the client's writing side taken, when the
// upstream's confirmation is written.
func (s *session) toldOfSubscription(c wire.Confirmation) {
	if l := s.listening.Load(); l != nil {
		l.Confirm(c)
	}
}

// listen makes the session's part in what the masters tell.
func (s *session) listen() *pubsub.Listener {
	if l := s.listening.Load(); l != nil {
		return l
	}
	l := pubsub.Listen(s.ctx, listenerHost{s}, pubsub.Options{
		Source: s.server.cfg.subscribes, Out: s.out, Memory: s.server.memory, Version: s.client.version,
	})
	s.server.cfg.metrics.ClientListens(1)
	s.outdatedAt.Store(0)
	s.listening.Store(l)
	return l
}

// stopListening returns when nothing that the masters tell reaches the client
// any more.
func (s *session) stopListening() {
	if l := s.listening.Load(); l != nil {
		s.listening.Store(nil)
		l.Close()
		s.server.cfg.metrics.ClientListens(-1)
	}
}

// restricted tells whether the client is in RESP2's subscribe mode. Only while
// nothing is owed.
func (s *session) restricted() bool {
	if up := s.upstream.Load(); up != nil {
		return up.owed.restricted()
	}
	l := s.listening.Load()
	return l != nil && s.client.version == wire.RESP2 && l.Count() > 0
}

func textsOf(args [][]byte) []string {
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = string(arg)
	}
	return texts
}

// listenerHost is the session as the listener for its client sees it.
type listenerHost struct{ session *session }

func (h listenerHost) Covers(key []byte) bool {
	return h.session.server.settings().Router.Rules.Covers(route.AnyDB, key)
}

func (h listenerHost) Peek(ctx context.Context, db int, name, key string) []byte {
	args := [][]byte{[]byte(name), []byte(key)}
	spec := command.Builtin().Lookup(args)
	return h.session.server.cfg.locks.do(ctx, nil, lockCall{db: db, args: args, route: lockRoute(spec, len(args))})
}

func (h listenerHost) OutputLimit() int64 { return h.session.server.settings().Limits.Output }
func (h listenerHost) InPipe() bool       { return h.session.isPipe() }

func (h listenerHost) Delivered(messages, invalidations int) {
	h.session.server.cfg.metrics.WokenUp(messages, invalidations)
}

func (h listenerHost) ClientLeft() { h.session.clientLeft() }

func (h listenerHost) Overflow(memory bool) {
	reached := config.LimitOutput
	if memory {
		reached = config.LimitMemory
	}
	cfg := h.session.server.cfg
	cfg.metrics.LimitReached(string(reached))
	cfg.metrics.ListenerEnded(metrics.ListenerOverflow)
	cfg.log.Warn("a subscribed client that does not read its messages is cut off")
	h.session.cutOff()
}

func (h listenerHost) MissedMessages()     { h.session.missMessages("too few masters were listened to") }
func (h listenerHost) Panicked(reason any) { h.session.panicked(reason) }

// missMessages ends the session once it has done what it was sent: messages
// may have been missed, and a client that reconnects looks for itself, as it
// does when its one Redis has restarted.
func (s *session) missMessages(why string) {
	s.server.cfg.metrics.ListenerEnded(metrics.ListenerGap)
	s.server.cfg.log.Info("disconnecting a subscribed client: it may have missed messages", slog.String("reason", why))
	s.missed.Store(true)
	s.sock.Wake()
}
