package handler

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A registry has the clients that are connected to this process. The upstream knows only its own connections,
// and not every client has one. Its mutex is held for a few lines, and never while a session is called, except to make
// a new one.
type registry struct {
	mu     sync.Mutex
	lastID int64
	byID   map[int64]*Handler
}

// newClient makes the Handler of a client that has connected. It owns the connection, and ends with
// running. start must be called. If limits.clients are connected already, the result is nil.
func (v *Service) newClient(running context.Context, client net.Conn) *Handler {
	v.registry.mu.Lock()
	defer v.registry.mu.Unlock()
	if len(v.byID) >= v.env.Active.Load().Limits.Clients {
		return nil
	}
	v.lastID++
	h := v.newHandler(running, v.lastID, client)
	v.byID[h.ID()] = h
	return h
}

// left is called when a client's session has ended.
func (v *Service) left(h *Handler) {
	v.registry.mu.Lock()
	delete(v.byID, h.ID())
	v.registry.mu.Unlock()
	v.env.Metrics.ClientGone()
	v.door.active.Done()
}

// find returns the client with this id, or nil.
func (b *registry) find(id int64) *Handler {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byID[id]
}

// All returns the clients whose sessions have not ended, in the order in which they came.
func (b *registry) All() []*Handler {
	b.mu.Lock()
	list := make([]*Handler, 0, len(b.byID))
	for _, h := range b.byID {
		list = append(list, h)
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y *Handler) int { return cmp.Compare(x.ID(), y.ID()) })
	return list
}

// listed returns the clients that CLIENT LIST shows. One that was killed is not shown any more, even if its end takes a
// moment.
func (b *registry) listed() []*Handler {
	return slices.DeleteFunc(b.All(), (*Handler).isKilled)
}

func (h *Handler) isKilled() bool { return h.HasEnded(session.Killed) || h.HasEnded(session.Quit) }

// Known are the clients as package events knows them, in the order in which they came.
func (b *registry) Known() []events.ClientInfo {
	var list []events.ClientInfo
	for _, h := range b.listed() {
		info, s := h.entry.Info(), h.status()
		info.LibName, info.LibVersion, info.Idle, info.WaitsOn = s.LibName, s.LibVersion, s.idle, s.waits
		list = append(list, info)
	}
	return list
}

// list are the lines of the clients that CLIENT LIST shows.
func (b *registry) list(filter listFilter) (lines []byte) {
	shown := map[int64]bool{} // an id that is repeated must not make the reply large
	for _, id := range filter.ids {
		if h := b.find(id); h != nil && !h.isKilled() && !shown[id] {
			shown[id] = true
			lines = h.status().line(lines)
		}
	}
	if filter.ids != nil {
		return lines
	}
	for _, h := range b.listed() {
		if s := h.status(); filter.kind == typeAny || filter.kind == s.kind() {
			lines = s.line(lines)
		}
	}
	return lines
}

// kill ends the sessions that the filter is about, and returns the reply. The client's own one ends after
// the reply.
func (h *Handler) kill(filter killFilter) (reply []byte) {
	killed := 0
	by, _ := addresses(h.RemoteAddr(), h.LocalAddr())
	for _, other := range h.service.listed() {
		switch {
		case !filter.matches(other.status(), other == h):
			continue
		case other == h:
			h.End(session.Quit)
		default:
			other.End(session.Killed, slog.String("client", other.RemoteAddr().String()), slog.String("by", by))
		}
		killed++
	}
	switch {
	case !filter.old:
		return redcon.AppendInt(nil, int64(killed))
	case killed == 0:
		return []byte(errNoSuchClient)
	}
	return []byte(wire.OK)
}

// upstreamOf is the upstream's connection of the client with this id, or nil.
func (b *registry) upstreamOf(id int64) *upstream.Conn {
	if h := b.find(id); h != nil {
		return h.Upstream()
	}
	return nil
}
