package handler

import (
	"cmp"
	"log/slog"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// LogValue describes the client for the log.
func (h *Handler) LogValue() slog.Value {
	return slog.GroupValue(slog.String("address", h.RemoteAddr().String()), slog.String("name", h.client.Name))
}

// performClientSetting performs CLIENT SETNAME, GETNAME, SETINFO, NO-EVICT and NO-TOUCH. An open upstream gets the
// settings, too.
func (h *Handler) performClientSetting(name string, cmd wire.Command, _ route.Route) {
	reply := h.client.Perform(name, cmd.Args)
	h.ReplyBytes(reply)
	if h.Upstream() != nil && string(reply) == wire.OK {
		h.Insert(cmd.Raw, upstream.Expectation{To: upstream.ToNobody, Count: 1})
	}
}

func (h *Handler) performPing(_ string, cmd wire.Command, _ route.Route) {
	if refusal := wire.CheckPing(cmd.Args); refusal != "" {
		h.ReplyError(refusal)
		return
	}
	h.ReplyBytes(wire.AppendPong(nil, cmd.Args, h.restricted()))
}

// performSelect performs SELECT. An open upstream decides, because it knows the number of
// its databases.
func (h *Handler) performSelect(_ string, cmd wire.Command, _ route.Route) {
	index, refusal := wire.ParseDatabase(cmd.Args[1])
	if h.Upstream() != nil {
		reply, ok := h.Ask(cmd.Raw)
		if ok && reply[0] == '+' && refusal == "" {
			h.client.DB = index
		}
		h.ReplyBytes(reply)
		return
	}
	if refusal == "" && (index < 0 || index >= cmp.Or(h.service.Databases(), config.DefaultDatabases)) {
		refusal = wire.ErrDatabaseIndex
	}
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	h.client.DB = index
	h.Reply(wire.OK)
}

// performReplyMode performs CLIENT REPLY. The proxy never forwards it, because it needs the
// upstream's replies to match them with commands. It drops them itself.
func (h *Handler) performReplyMode(_ string, cmd wire.Command, _ route.Route) {
	reply := h.replies.Set(cmd.Args[2])
	if reply == wire.OK {
		h.Mute(false)
	}
	h.Reply(reply)
}

// reset performs RESET. It also closes the upstream connection; the next command that needs
// one opens it again. The caller has waited for all pending replies. In a pipe, everything
// that the upstream still sends is delivered first.
func (h *Handler) reset() {
	if !h.CloseUpstream() {
		return
	}
	h.stopListening()
	h.tracking = pubsub.Tracking{}
	h.forgetLogin()
	h.client.Release()
	h.client = upstream.NewClientState(h.reserve, h.Env.Active.Load().Upstream.DB)
	if h.replies.IsOff() { // after SKIP not even RESET is answered
		h.Mute(false)
	}
	h.replies = wire.ReplyMode{}
	h.monitoring = false
	h.endTransaction()
	h.Reply(wire.Reset)
	if h.account.Load() == nil {
		h.arrived()
	}
}

// helloReply describes the proxy as one ordinary Redis.
func (h *Handler) helloReply() []byte {
	return wire.AppendHello(nil, h.client.Version, h.service.shownVersion(), h.ID())
}

// performHello performs HELLO. The proxy always answers it. An open upstream gets the protocol and
// the name, never the password. The client sees the upstream's reply only if it is an error.
func (h *Handler) performHello(_ string, cmd wire.Command, _ route.Route) {
	request, refusal := wire.ParseHello(cmd.Args)
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	if request.Login {
		if answer := h.authenticate([][]byte{[]byte("AUTH"), request.User, request.Password}); answer != wire.OK {
			h.Reply(answer)
			return
		}
	}
	if h.account.Load() == nil {
		h.ReplyError(h.unauthenticated(wire.ErrHelloNoAuth))
		return
	}
	before := h.client
	if request.Named && !h.client.SetName(request.Name) {
		h.ReplyError(wire.ErrMemory)
		return
	}
	if !h.tellUpstream(request) {
		h.client.Restore(before, h.Env.Budget.Use)
		return
	}
	if request.Number != 0 {
		h.client.Version = request.Version()
	}
	l := h.listener.Load()
	if l == nil {
		h.ReplyBytes(h.helloReply())
		return
	}
	h.publish() // before the client can act on the answer
	h.FlushWith(func(replies []byte) []byte {
		if !h.Muted() {
			replies = append(replies, h.helloReply()...)
		}
		l.Speak(h.client.Version)
		return replies
	})
}

// tellUpstream sends an open upstream the new protocol and name. It returns false if the
// client has already got an error.
func (h *Handler) tellUpstream(request wire.Hello) bool {
	if h.Upstream() == nil || request.Number == 0 {
		return true
	}
	if !request.Named && request.Version() == h.client.Version {
		return true
	}
	h.Insert(request.Forward(), upstream.Expectation{Kind: upstream.Switch, Version: request.Version(), To: upstream.ToOwner, Count: 1})
	reply, ok := h.Settled()
	if ok && resp.IsError(reply) {
		h.ReplyBytes(reply)
		return false
	}
	return ok
}
