package handler

import (
	"log/slog"

	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/session"
)

// holder returns the Holder of the client's leases. It is nil as long as no rule asks for
// leases.
func (h *Handler) holder() *lease.Holder {
	holder := h.leases.Load()
	if holder == nil && h.service.Leases != nil && h.Env.Active.Load().Router.Rules.Lease() {
		holder = h.service.Leases.NewHolder(func() {
			h.End(session.LeaseLost, slog.String("client", h.RemoteAddr().String()))
		})
		h.leases.Store(holder)
		h.WatchPeer() // others may wait for the client's locks if its machine vanishes
	}
	return holder
}

// holdsLeases tells whether the client is silent because it works under its locks. Any
// goroutine may call it.
func (h *Handler) holdsLeases() bool {
	holder := h.leases.Load()
	return holder != nil && holder.Holds()
}

// endLeases stops the renewals. Locks are released only if the client itself has left:
// one that the proxy disconnects may still be at work.
func (h *Handler) endLeases() {
	if holder := h.leases.Load(); holder != nil {
		holder.Close(h.ClientLeaves())
	}
}
