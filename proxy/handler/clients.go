package handler

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performOnClients performs CLIENT LIST, INFO, ID, KILL, UNBLOCK, GETREDIR and TRACKINGINFO, whose arity is
// right. They are about the proxy's own sessions: the upstream knows only its own connections, and not
// every session has one.
func (h *Handler) performOnClients(name string, args [][]byte) {
	h.client.AsksID = h.client.AsksID || name == "client|id"
	h.publish()
	h.ReplyBytes(h.answerOnClients(name, args))
}

// answerOnClients returns the reply, or nil if the session must end instead.
func (h *Handler) answerOnClients(name string, args [][]byte) (reply []byte) {
	switch name {
	case "client|unblock":
		args, _ = h.atUpstream(args, 2)
		return h.askUpstream(args...)
	case "client|trackinginfo":
		return h.showTracking(h.askUpstream(args...))
	case "client|id":
		// Another client may soon name this id in CLIENT TRACKING REDIRECT.
		if h.TryOpen() == "" && !h.learnID() {
			return nil
		}
		return redcon.AppendInt(nil, h.ID())
	case "client|info":
		return wire.AppendText(nil, h.status().line(nil), h.client.Version)
	case "client|getredir":
		published := h.published()
		return redcon.AppendInt(nil, published.redirection())
	case "client|list":
		filter, refusal := parseList(args)
		if refusal = cmp.Or(refusal, h.lacksRight("LIST")); refusal != "" {
			return []byte(refusal)
		}
		return wire.AppendText(nil, h.service.list(filter), h.client.Version)
	}
	filter, refusal := parseKill(args)
	if refusal = cmp.Or(refusal, h.lacksRight("KILL")); refusal != "" {
		return []byte(refusal)
	}
	if filter.user != nil && !h.knowsUser(filter.user) {
		return []byte(errNoSuchUser(filter.user))
	}
	return h.kill(filter)
}

// askUpstream returns the upstream's reply to a command, an error if it cannot be asked, or nil if the session
// must end.
func (h *Handler) askUpstream(args ...[]byte) (reply []byte) {
	if refusal := h.TryOpen(); refusal != "" {
		return []byte(refusal)
	}
	reply, _ = h.Ask(resp.AppendCommand(nil, args...))
	return reply
}

// lacksRight returns the upstream's refusal if it has the users and does not let the client's
// user use this subcommand of CLIENT, LIST or KILL, or "". The command that the upstream gets
// changes nothing.
func (h *Handler) lacksRight(subcommand string) wire.Error {
	if !h.Env.Active.Load().Users.AtUpstream {
		return ""
	}
	unreachable, reply := h.TryOpen(), []byte(nil)
	if unreachable == "" {
		reply = h.askUpstream([]byte("CLIENT"), []byte(subcommand), []byte("ID"), []byte(noClientID))
	}
	return refusalIn(unreachable, reply)
}

// refusalIn is lacksRight's judgement of the upstream's reply.
func refusalIn(unreachable wire.Error, reply []byte) wire.Error {
	switch {
	case unreachable != "":
		return unreachable
	case len(reply) == 0:
		return wire.ErrUpstreamDown
	case !resp.IsError(reply) || bytes.HasPrefix(reply, []byte("-ERR ")): // before 6.2, LIST knows no ID
		return ""
	}
	return wire.Error(reply)
}

// knowsUser asks the upstream for a user that the proxy does not have.
func (h *Handler) knowsUser(name []byte) bool {
	if h.Env.Active.Load().Users.Known(name) == string(name) {
		return true
	}
	reply := h.askUpstream([]byte("CLIENT"), []byte("KILL"), []byte("USER"), name, []byte("ID"), []byte(noClientID))
	return len(reply) > 0 && reply[0] == ':'
}

// learnID asks the upstream for the id of the session's connection to it, if there is one
// whose id is unknown. It returns false if the session must end instead.
func (h *Handler) learnID() bool {
	own := h.Upstream()
	if own == nil || own.ID() != 0 {
		return true
	}
	reply, ok := h.Ask(resp.AppendCommand(nil, "CLIENT", "ID"))
	if ok {
		own.SetID(reply)
	}
	return ok
}

// atUpstream returns the arguments with the client id at this index replaced by the id that
// the upstream has for that client. If it has none, it gets an id that no client has, and
// answers accordingly. An argument that is no number stays as it is.
func (h *Handler) atUpstream(args [][]byte, at int) (mapped [][]byte, id int64) {
	id, ok := resp.ParseDecimal(args[at])
	if !ok {
		return args, 0
	}
	mapped = slices.Clone(args)
	mapped[at] = []byte(noClientID)
	if id == h.ID() {
		h.learnID()
	}
	if own := h.service.upstreamOf(id); own != nil && own.ID() != 0 {
		mapped[at] = strconv.AppendInt(nil, own.ID(), 10)
	}
	return mapped, id
}

// mapRedirect returns CLIENT TRACKING as the upstream gets it, and the client to which it redirects, or 0.
func (h *Handler) mapRedirect(cmd wire.Command) (mapped wire.Command, to int64) {
	if at := redirectIn(cmd.Args); at > 0 && h.TryOpen() == "" {
		cmd.Args, to = h.atUpstream(cmd.Args, at)
		cmd.Raw = resp.AppendCommand(nil, cmd.Args...)
	}
	return cmd, to
}

// redirectIn returns the index of the id behind REDIRECT in CLIENT TRACKING, or 0.
func redirectIn(args [][]byte) (at int) {
	for i := 3; i+1 < len(args); i++ {
		switch {
		case wire.IsWord(args[i], "REDIRECT"):
			return i + 1
		case wire.IsWord(args[i], "PREFIX"):
			i++
		}
	}
	return 0
}

// showTracking puts into a reply to CLIENT TRACKINGINFO what the upstream does not know.
func (h *Handler) showTracking(reply []byte) []byte {
	if h.tracking.Redirect != 0 { // the upstream has another id for that client
		reply = wire.ReplaceField(reply, "redirect\r\n:", strconv.FormatInt(h.tracking.Redirect, 10))
	}
	if h.tracking.Caching {
		reply = showCaching(reply)
	}
	return reply
}

// showCaching adds the flag for CLIENT CACHING to a reply to CLIENT TRACKINGINFO, where Redis
// has it. The upstream gets CACHING only in front of the command that it is for.
func showCaching(reply []byte) []byte {
	mode, flag := "$5\r\noptin\r\n", "$11\r\ncaching-yes\r\n"
	if !bytes.Contains(reply, []byte(mode)) {
		mode, flag = "$6\r\noptout\r\n", "$10\r\ncaching-no\r\n"
	}
	head, list, found := bytes.Cut(reply, []byte("$5\r\nflags\r\n"))
	before, after, hasMode := bytes.Cut(list, []byte(mode))
	if !found || !hasMode || bytes.HasPrefix(after, []byte(flag)) {
		return reply
	}
	before = bytes.Clone(before)
	before[1]++ // the number of flags, which has one digit
	return slices.Concat(head, []byte("$5\r\nflags\r\n"), before, []byte(mode), []byte(flag), after)
}

// publish shows other sessions what has changed.
func (h *Handler) publish() {
	now, was := h.published(), h.shown
	if now == was {
		return
	}
	h.shownMu.Lock()
	h.shown = now
	h.shownMu.Unlock()
	if now.User != was.User || now.ClientSettings != was.ClientSettings {
		h.introduce()
	}
}

// introduce tells package events what is published.
func (h *Handler) introduce() {
	now := &h.shown
	h.entry.Introduce(events.Identity{Name: now.Name, User: now.User, DB: now.DB, RESP: now.Version.Number()})
}

func (h *Handler) published() published {
	p := published{
		ClientSettings: h.client.ClientSettings, Queued: h.multi.len(), QueuedBytes: h.multi.memory, Monitors: h.monitoring,
	}
	if user := h.account.Load(); user != nil {
		p.User = user.Name
	}
	if mode := h.tracking.Mode; mode != nil {
		p.Tracks, p.Broadcast, p.Caching, p.Redirect = true, mode.Broadcast, h.tracking.Caching, h.tracking.Redirect
	}
	return p
}

// status looks at the client. Any goroutine may call it.
func (h *Handler) status() *clientStatus {
	h.shownMu.Lock()
	shown := h.shown
	h.shownMu.Unlock()
	waits := waitsForNobody
	if up := h.Upstream(); h.onLocks.Load() > 0 {
		waits = waitsForLocks
	} else if up != nil && !up.Drained() {
		waits = waitsForUpstream
	}
	address, local := addresses(h.RemoteAddr(), h.LocalAddr())
	return &clientStatus{
		published: shown, command: h.spec.Load(), id: h.ID(), address: address, local: local,
		age: time.Since(h.since), idle: h.Silent(), subscriptions: h.Subscriptions(), waits: waits,
	}
}
