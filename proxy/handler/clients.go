package handler

import (
	"log/slog"

	"redlock-proxy/proxy/clients"
	"redlock-proxy/proxy/session"
)

func (h *Handler) performOnClients(name string, args [][]byte) {
	h.client.AsksID = h.client.AsksID || name == "client|id"
	h.publish()
	h.ReplyBytes(h.clients.Perform(name, args))
}

// publish shows other sessions what has changed.
func (h *Handler) publish() { h.clients.Publish(h.facts()) }

func (h *Handler) facts() clients.Facts {
	facts := clients.Facts{
		Settings: h.client.Settings, Queued: h.transaction.Len(), QueuedBytes: h.transaction.bytes,
		Monitors: h.monitoring,
	}
	if user := h.account.Load(); user != nil {
		facts.User = user.Name
	}
	if mode := h.tracking.Mode; mode != nil {
		facts.Tracks, facts.Broadcast, facts.Caching = true, mode.Broadcast, h.tracking.Caching
	}
	return facts
}

// listed is the handler as package clients sees it.
type listed struct{ *Handler }

func (l listed) Kill(by string) {
	l.End(session.Killed, slog.String("client", l.RemoteAddr().String()), slog.String("by", by))
}

func (l listed) KillAfterReply() { l.End(session.Quit) }

func (l listed) UsersAtUpstream() bool { return l.Env.Active.Load().Users.AtUpstream }

func (l listed) HasUser(name []byte) bool {
	return l.Env.Active.Load().Users.Known(name) == string(name)
}
