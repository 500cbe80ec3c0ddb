package handler

import (
	"context"
	"log/slog"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performOnLocks waits until all earlier commands are answered. Then it runs the command on
// the masters and answers it.
func (h *Handler) performOnLocks(name string, args [][]byte, to route.Route) {
	call := h.lockCommand(args, to)
	if !h.restricted() && h.overlapsOnLocks(call) || !h.Settle() || h.refusedAsRestricted(name, args) {
		return
	}
	h.answerOnLocks(call)
}

// askMasters is performOnLocks for a plain client.
func (h *Handler) askMasters(args [][]byte, to route.Route) {
	if call := h.lockCommand(args, to); !h.overlapsOnLocks(call) && h.Settle() {
		h.answerOnLocks(call)
	}
}

func (h *Handler) answerOnLocks(call lock.Command) {
	h.ReplyBytes(h.runOnLocks(call))
	if cap(h.lockReply) > session.LargeBuffer {
		h.lockReply = nil
	}
}

// overlapsOnLocks has the masters asked without waiting for earlier commands on other keys, if that is
// possible. The reply comes after theirs.
func (h *Handler) overlapsOnLocks(call lock.Command) bool {
	if !h.service.Locks.Overlaps(call) {
		return false
	}
	key := call.Args[call.Route.Keys[0]]
	if len(key) == 0 || !h.MayOverlap(key, call.Args) {
		return false
	}
	h.askBeside(key, call) // of its own, so that nothing is allocated where nothing overlaps
	return true
}

func (h *Handler) askBeside(key []byte, call lock.Command) {
	call.Leases = h.holder()
	h.Overlap(key, call.Args, func(ctx context.Context, a *session.Asked) {
		h.onLocks.Add(1)
		defer h.onLocks.Add(-1)
		call.Args = a.Args
		a.Reply = h.service.Locks.Do(ctx, a.Reply, call)
	})
}

// lockCommand is a command of the client for the masters. The client's leases are missing.
func (h *Handler) lockCommand(args [][]byte, to route.Route) lock.Command {
	return lock.Command{DB: h.client.DB, Args: args, Route: to, Version: h.client.Version, Client: h, From: h.entry}
}

// runOnLocks runs a command on the masters. The reply is valid until the next call.
func (h *Handler) runOnLocks(call lock.Command) (reply []byte) {
	size := 0
	for _, arg := range call.Args {
		size += len(arg)
	}
	copies, ok := h.holdCopies(size)
	if !ok {
		h.lockReply = append(h.lockReply[:0], wire.ErrMemory...)
		return h.lockReply
	}
	defer h.Env.Budget.Release(copies)
	call.Leases = h.holder()
	if h.OnLoop() && h.service.Locks.Parks(call) {
		h.onLocks.Add(1)
		h.Parked(func(ctx context.Context) { h.lockReply = h.service.Locks.Do(ctx, h.lockReply[:0], call) })
		h.onLocks.Add(-1)
		return h.lockReply
	}
	h.busyOnLocks(func() {
		h.trackLocks(call)
		h.lockReply = h.service.Locks.Do(h.Context(), h.lockReply[:0], call)
	})
	return h.lockReply
}

// busyOnLocks is Busy for requests to the masters.
func (h *Handler) busyOnLocks(ask func()) {
	h.onLocks.Add(1)
	h.Busy(ask)
	h.onLocks.Add(-1)
}

// holdCopies takes memory for the copies of a large lock command: the request, and the question
// to the masters. The streams to the masters take only one large question at a time. The caller
// must release held. ok is false if the budget has no room.
func (h *Handler) holdCopies(size int) (held int, ok bool) {
	if size <= session.LargeBuffer {
		return 0, true
	}
	return 2 * size, h.reserve(2 * size)
}

// refusedAsMoving refuses a command on a key that a change of the rules has moved, and
// returns whether it did.
func (h *Handler) refusedAsMoving(r *route.Router, cmd wire.Command, to route.Route) bool {
	until := r.HeldBack(h.database(), cmd.Args, to, time.Now())
	if until.IsZero() {
		return false
	}
	h.abort(wire.ErrMoving(until))
	return true
}

// refusedAsLarge refuses a command that would hold up all other lock commands at the masters,
// and returns whether it did. Of a Split command the masters get only the lock keys.
func (h *Handler) refusedAsLarge(limits *config.Limits, cmd wire.Command, to route.Route) bool {
	if int64(len(cmd.Raw)) <= limits.LockCommand && len(to.Keys) <= limits.LockKeys {
		return false
	}
	size, keys := len(cmd.Raw), 0
	if to.Plane == route.Split {
		size = 0
	}
	for i, at := range to.Keys {
		if to.Lock[i] && at < len(cmd.Args) {
			keys++
			if to.Plane == route.Split {
				size += len(cmd.Args[at])
			}
		}
	}
	switch {
	case int64(size) > limits.LockCommand:
		h.abort(h.reached(config.LimitLockCommand, wire.ErrTooLarge("lock command", config.LimitLockCommand)))
	case keys > limits.LockKeys:
		h.abort(h.reached(config.LimitLockKeys, wire.ErrLockKeys))
	default:
		return false
	}
	return true
}

// performSplit performs a command whose keys are on both planes. It runs both halves at the
// same time and joins their replies. If one half fails, the client gets its error.
func (h *Handler) performSplit(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name, cmd.Args) || !h.open(cmd) {
		return
	}
	h.sendCaching()
	upstreamHalf, lockHalf, ofLocks := to.Halves(cmd.Args)
	h.Insert(resp.AppendCommand(nil, upstreamHalf...), upstream.Expectation{To: upstream.ToOwner, Count: 1})
	fromLocks := h.runOnLocks(h.lockCommand(lockHalf, ofLocks))
	fromUpstream, ok := h.Settled()
	if !ok {
		return
	}
	if fromUpstream == nil {
		fromUpstream = []byte(wire.ErrUpstreamReply)
	}
	if name == "mget" {
		h.ReplyBytes(to.JoinValues(fromUpstream, fromLocks))
		return
	}
	h.ReplyBytes(route.JoinCounts(fromUpstream, fromLocks))
}

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
