package handler

import (
	"slices"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A client subscribes at the upstream, and sees the upstream's confirmations and counts.
// But a script on lock keys publishes on the masters, and nowhere else. So the proxy also
// subscribes at the masters to every channel that may carry wake-ups. It does so before
// the upstream confirms: after the confirmation a client tries the lock once more, and
// then waits for a message.

// performSubscription performs the SUBSCRIBE and UNSUBSCRIBE families. Only the upstream
// has sharded channels.
func (h *Handler) performSubscription(name string, cmd wire.Command) {
	of, adds, _ := wire.ConfirmationOf([]byte(name))
	names := textsOf(cmd.Args[1:])
	switch {
	case of == wire.FamilyShard || h.service.Subscribes == nil,
		adds && !slices.ContainsFunc(names, func(name string) bool { return h.carriesWakeUps(of, name) }):
		h.relaySubscription(of, adds, cmd, nil)
	case adds:
		h.subscribe(of, cmd, names)
	default:
		h.unsubscribe(of, cmd, names)
	}
}

func (h *Handler) subscribe(of wire.Family, cmd wire.Command, names []string) {
	if !h.Settle() {
		return
	}
	if !h.maySubscribe(of, names) {
		h.ReplyError(wire.ErrSubscriptions)
		return
	}
	refusal := h.TryOpen()
	if refusal != "" && slices.ContainsFunc(names, func(name string) bool { return !h.belongsToLocks(name) }) {
		h.ReplyError(refusal)
		return
	}
	h.listenTo(of, names)
	if refusal != "" {
		h.subscribeHere(of, names)
		return
	}
	h.relaySubscription(of, true, cmd, names)
}

// unsubscribe ends subscriptions. The proxy answers if there is no upstream connection,
// because then the upstream has no subscriptions of this client.
func (h *Handler) unsubscribe(of wire.Family, cmd wire.Command, names []string) {
	switch {
	case h.Upstream() == nil:
		if h.Settle() { // shared connections may still owe replies
			h.unsubscribeHere(of, names)
		}
	case !h.listensToMasters():
		h.relaySubscription(of, false, cmd, nil)
	default:
		h.relaySubscription(of, false, cmd, names)
		if h.Settle() {
			h.unsubscribeUnwanted()
		}
	}
}

// relaySubscription forwards the command to the upstream. names are the names in the
// command if the result for each is noted, and nil otherwise.
func (h *Handler) relaySubscription(of wire.Family, adds bool, cmd wire.Command, names []string) {
	left := len(cmd.Args) - 1
	if adds {
		left = max(left, 1) // without names the upstream answers one error
	}
	h.relay(cmd, upstream.Expectation{Kind: upstream.Confirmations, Family: of, Adds: adds, Count: left, Names: names})
}

// carriesWakeUps tells whether messages on the masters may be for subscribers of this
// channel or pattern. Every pattern counts, because its text does not show whether it
// matches a channel of a lock.
func (h *Handler) carriesWakeUps(of wire.Family, name string) bool {
	return !pubsub.IsNotification([]byte(name)) && h.mayUseLocks() && (of == wire.FamilyPattern || h.belongsToLocks(name))
}

// belongsToLocks tells whether the channel is a lock's. For a pattern it tells whether all
// channels that the pattern is meant for are channels of locks.
func (h *Handler) belongsToLocks(name string) bool {
	return h.Env.Active.Load().Router.Rules.CoversChannel([]byte(name))
}

// subscribesToLocks tells whether a command subscribes to channels of locks. It must be
// refused where the proxy does not see the upstream's confirmations, because messages of
// the masters could not be delivered there.
func (h *Handler) subscribesToLocks(name string, args [][]byte) bool {
	of, adds, ok := wire.ConfirmationOf([]byte(name))
	return ok && adds && of != wire.FamilyShard && h.service.Subscribes != nil &&
		slices.ContainsFunc(args[1:], h.Env.Active.Load().Router.Rules.CoversChannel)
}

// maySubscribe tells whether the limits allow the subscriptions to names at the masters. If not, it counts
// the limit.
func (h *Handler) maySubscribe(of wire.Family, names []string) bool {
	count, size := 0, 0
	l := h.listener.Load()
	if l != nil {
		count = l.Len()
	}
	for _, name := range names {
		if (l == nil || !l.Has(of, name)) && h.carriesWakeUps(of, name) {
			count++
			size += len(name) + pubsub.NameOverhead
		}
	}
	switch {
	case size > 0 && count > h.Env.Active.Load().Limits.Subscriptions:
		h.reached(config.LimitSubscriptions, "")
		return false
	case !h.Env.Budget.HasRoom(size):
		h.reached(config.LimitMemory, "")
		return false
	}
	return true
}

// listenTo subscribes to names at the masters, and returns when they have confirmed. The
// client gets no message before its own confirmation.
func (h *Handler) listenTo(of wire.Family, names []string) {
	l := h.listen()
	heard := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !h.carriesWakeUps(of, name) })
	h.Busy(func() { l.Subscribe(h.Context(), of, heard) })
}

// listen returns the Listener, and starts one if there is none.
func (h *Handler) listen() *pubsub.Listener {
	if l := h.listener.Load(); l != nil {
		return l
	}
	l := pubsub.Listen(h.Session, h.service.Subscribes, h.service.Locks.Peek, h.client.Version)
	h.outdatedAt.Store(0)
	h.listener.Store(l)
	return l
}

// listensToMasters tells whether the client may get messages or invalidations from the masters. Any
// goroutine may ask.
func (h *Handler) listensToMasters() bool { return h.listener.Load() != nil }

// stopListening ends the Listener. After it the client gets nothing more from the masters, until listen.
func (h *Handler) stopListening() {
	if l := h.listener.Load(); l != nil {
		h.listener.Store(nil)
		l.Close()
	}
}

// unsubscribeUnwanted ends the subscriptions at the masters that the client has ended. No reply
// may be pending, so that every confirmation has been seen.
func (h *Handler) unsubscribeUnwanted() {
	if l := h.listener.Load(); l != nil && l.Unsubscribe() {
		h.stopListening()
	}
}

// restricted tells whether the client is in RESP2's subscribe mode. No reply may be
// pending.
func (h *Handler) restricted() bool {
	if own := h.Upstream(); own != nil {
		return own.Restricted()
	}
	return h.client.Version == wire.RESP2 && h.Subscriptions() != [3]int{}
}

// restrictedHere tells whether the proxy itself must refuse commands in RESP2's subscribe
// mode, because the client has no upstream connection that would do so.
func (h *Handler) restrictedHere() bool {
	return h.listensToMasters() && h.Upstream() == nil && h.restricted()
}

// While the upstream is unreachable, the proxy itself confirms subscriptions to
// channels of locks, so that clients can wait for locks. It disconnects these clients
// when anybody has reached the upstream again, be it a client or the monitor, which asks the
// upstream from time to time. Else they would miss messages that are published there.
// Their libraries connect and subscribe again, as after a restart of their one Redis.

// subscribeHere confirms the names without the upstream. Messages that the masters have
// published meanwhile may follow at once.
func (h *Handler) subscribeHere(of wire.Family, names []string) {
	l := h.listener.Load()
	h.outdatedAt.Store(h.service.timesReached() + 1)
	h.FlushWith(func(replies []byte) []byte {
		for _, name := range names {
			l.Confirm(wire.Confirmation{Family: of, Adds: true, Names: []string{name}})
			replies = h.appendConfirmation(replies, of, true, &name)
		}
		return replies
	})
}

// unsubscribeHere is subscribeHere for UNSUBSCRIBE. Without names it ends all
// subscriptions of the family.
func (h *Handler) unsubscribeHere(of wire.Family, names []string) {
	l := h.listener.Load()
	if len(names) == 0 && l != nil {
		names = l.Confirmed(of)
	}
	h.FlushWith(func(replies []byte) []byte {
		for _, name := range names {
			if l != nil {
				l.Confirm(wire.Confirmation{Family: of, Names: []string{name}})
			}
			replies = h.appendConfirmation(replies, of, false, &name)
		}
		if len(names) == 0 {
			replies = h.appendConfirmation(replies, of, false, nil)
		}
		return replies
	})
	h.unsubscribeUnwanted()
}

// appendConfirmation adds a confirmation to the replies. As in Redis, CLIENT REPLY does
// not hide it.
func (h *Handler) appendConfirmation(replies []byte, of wire.Family, adds bool, name *string) []byte {
	replies = wire.AppendPushHeader(replies, 3, h.client.Version)
	replies = redcon.AppendBulkString(replies, of.Command(adds))
	if name == nil {
		replies = wire.AppendNull(replies, h.client.Version)
	} else {
		replies = redcon.AppendBulkString(replies, *name)
	}
	count := h.Subscriptions()
	return redcon.AppendInt(replies, int64(count[wire.FamilyChannel]+count[wire.FamilyPattern]))
}

// endIfOutdated ends the session if the proxy confirmed its subscriptions without the
// upstream, and the upstream has been reached since. Any goroutine may call it.
func (h *Handler) endIfOutdated() {
	l := h.listener.Load()
	if at := h.outdatedAt.Load(); l != nil && at > 0 && h.service.timesReached() >= at && l.Any() {
		l.Missed("the upstream is back and does not know its subscriptions")
	}
}

// publishesHere tells whether a PUBLISH goes to the masters: its channel is a lock's, and
// the upstream is unreachable. The subscribers of all proxies listen to the masters.
func (h *Handler) publishesHere(args [][]byte) bool {
	return h.Upstream() == nil && h.service.Subscribes != nil && len(args) == 3 && h.belongsToLocks(string(args[1])) && h.TryOpen() != ""
}

func textsOf(args [][]byte) []string {
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = string(arg)
	}
	return texts
}
