package handler

import (
	"cmp"
	"log/slog"

	"redlock-proxy/proxy/clients"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performOnClients performs the subcommands of CLIENT that are about the proxy's sessions. They
// are refused in a transaction, because EXEC could not put their replies among the others.
func (h *handler) performOnClients(name string, cmd wire.Command, to route.Route) {
	switch {
	case h.InPipe():
		h.ReplyAtOnce(string(wire.ErrInPipe))
	case h.inTransaction():
		h.abort(cmp.Or(to.Spec.Check(cmd.Args), wire.ErrNotInMulti))
	case h.mayAnswer(name, cmd.Args, to.Spec):
		h.client.AsksID = h.client.AsksID || name == "client|id"
		h.publish()
		h.ReplyBytes(h.clients.Perform(name, cmd.Args))
	}
}

// performRedirected is CLIENT TRACKING. The upstream has other ids for clients than the proxy.
func (h *handler) performRedirected(cmd wire.Command) {
	redirect := int64(0)
	if at := clients.RedirectIn(cmd.Args); at > 0 && h.TryOpen() == "" {
		cmd.Args, redirect = h.clients.AtUpstream(cmd.Args, at)
		cmd.Raw = resp.AppendCommand(nil, cmd.Args...)
	}
	if h.hearing.PerformTracking(cmd) {
		h.redirect = redirect
	}
}

// publish shows other sessions what has changed.
func (h *handler) publish() {
	facts := clients.Facts{
		Settings: h.client.Settings, Command: h.spec, Queued: h.transaction.Len(), QueuedBytes: h.transaction.bytes,
		Monitors: h.monitoring, Redirect: h.redirect,
	}
	facts.Tracks, facts.Broadcast, _ = h.hearing.Tracking()
	h.clients.Publish(facts)
}

// listed is the handler as package clients sees it.
type listed struct{ *handler }

func (l listed) User() string {
	if user := l.account.Load(); user != nil {
		return user.Name
	}
	return config.DefaultUser
}

func (l listed) Subscriptions() [3]int { return l.hearing.Subscriptions() }

func (l listed) Kill(by string) {
	l.End(session.Killed, slog.String("client", l.RemoteAddr().String()), slog.String("by", by))
}

func (l listed) KillAfterReply() { l.End(session.Quit) }

// KnowsUser asks the upstream for a user that the proxy does not have.
func (l listed) KnowsUser(name []byte) bool {
	if l.Env.Active.Load().Users.Known(name) == string(name) {
		return true
	}
	if l.TryOpen() != "" {
		return false
	}
	reply, ok := l.Ask(resp.AppendCommand(nil, []byte("CLIENT"), []byte("KILL"), []byte("USER"), name, []byte("ID"), []byte(clients.Nobody)))
	return ok && reply[0] == ':'
}

func (l listed) AskRights(command ...[]byte) wire.Error {
	if !l.Env.Active.Load().Users.AtUpstream {
		return ""
	}
	if refusal := l.TryOpen(); refusal != "" {
		return refusal
	}
	reply, _ := l.Ask(resp.AppendCommand(nil, command...))
	if string(resp.ErrorCode(reply)) == "NOPERM" {
		return wire.Error(reply)
	}
	return ""
}
