package handler

import (
	"strings"

	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performTracking performs CLIENT TRACKING.
func (h *Handler) performTracking(_ string, cmd wire.Command, _ route.Route) {
	mapped, redirect := h.mapRedirect(cmd)
	if h.startTracking(mapped) {
		h.tracking.Redirect = redirect
	}
}

// performCaching performs CLIENT CACHING. The proxy itself answers it,
// because it is about the next command, and nobody knows yet where that will go.
func (h *Handler) performCaching(_ string, cmd wire.Command, _ route.Route) {
	if refusal := h.tracking.Cache(cmd.Args[2]); refusal != "" {
		h.ReplyError(refusal)
		return
	}
	h.Reply(wire.OK)
}

// startTracking performs CLIENT TRACKING, whose arity is right. Without an upstream the
// proxy answers, because some clients send this command when they connect and take locks
// only afterwards. It returns false if the command is refused.
func (h *Handler) startTracking(cmd wire.Command) (done bool) {
	next, refusal := pubsub.ParseMode(cmd.Args[2:], h.tracking.Mode)
	unreachable := h.TryOpen()
	if unreachable == "" {
		reply, ok := h.Ask(cmd.Raw)
		if !ok {
			return false
		}
		if done = reply[0] == '+' && refusal == ""; done {
			h.track(next)
		}
		h.ReplyBytes(reply)
		return done
	}
	if refusal == "" && next != nil && next.Redirected {
		refusal = unreachable
	}
	if refusal != "" {
		h.ReplyError(refusal)
		return false
	}
	h.track(next)
	h.Reply(wire.OK)
	return true
}

// track sets the mode, and has the masters report the changes that it needs.
func (h *Handler) track(next *pubsub.Mode) {
	h.tracking.Set(next)
	if h.service.Subscribes == nil || !h.mayUseLocks() {
		return
	}
	if !h.tracking.OfMasters() {
		if l := h.listener.Load(); l != nil {
			l.Track(h.Context(), nil)
			h.unsubscribeUnwanted()
		}
		return
	}
	l := h.listen()
	h.Busy(func() { l.Track(h.Context(), next) })
}

// trackLocks reports lock commands that are about to be sent to the masters. The busy timer
// may own the client meanwhile.
func (h *Handler) trackLocks(calls ...lock.Command) {
	if l := h.listener.Load(); l != nil && h.tracking.OfMasters() {
		l.Begin(h.Context(), calls, h.tracking.Remembers())
	}
}

// tracked is called when a command has been performed. The client gets the reply to a lock command at
// once, because invalidations of its keys wait for that.
func (h *Handler) tracked(name string) {
	t := &h.tracking
	if t.Mode == nil {
		return
	}
	if l := h.listener.Load(); l != nil && l.IsBusy() {
		h.Flush()
		l.Replied(h.lockReply)
	}
	if !h.inTransaction() && !strings.HasPrefix(name, "client") {
		t.Caching = false
	}
}

// sendCaching sends the upstream the client's CLIENT CACHING, before the command that it is
// about. The connection must be open.
func (h *Handler) sendCaching() {
	if h.InPipe() {
		return
	}
	if caching := h.tracking.TellCaching(); caching != nil {
		h.Insert(caching, upstream.Expectation{To: upstream.ToNobody, Count: 1})
	}
}

// awaitInvalidations returns when the client has the invalidations that the upstream has sent so
// far. The caller then gives a reply that must come after them.
func (h *Handler) awaitInvalidations() {
	if h.tracking.OfMasters() && !h.tracking.Caching && h.client.Version == wire.RESP3 && h.Upstream() != nil && h.Settle() {
		_, _ = h.Ask(resp.AppendCommand(nil, "PING"))
	}
}
