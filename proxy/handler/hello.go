package handler

import (
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// helloReply describes the proxy as one ordinary Redis.
func (h *Handler) helloReply() []byte {
	return wire.AppendHello(nil, h.client.Version, h.service.shownVersion(), h.ID())
}

// hello performs HELLO. The proxy always answers it. An open upstream gets the protocol and
// the name, never the password. The client sees the upstream's reply only if it is an error.
func (h *Handler) hello(args [][]byte) {
	request, refusal := wire.ParseHello(args)
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
