package handler

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// watched holds the keys of WATCH that the next EXEC checks. It ends with EXEC, DISCARD,
// UNWATCH and RESET.
type watched struct {
	locks    []*redlock.Watch
	db       int  // the database of locks
	bytes    int  // the memory that locks take from the budget
	upstream bool // the upstream watches keys of its own
}

func (w *watched) any() bool { return len(w.locks) > 0 || w.upstream }

// performWatch performs WATCH on lock keys: it reads their values on the masters.
func (h *handler) performWatch(cmd wire.Command, spec *command.Spec) {
	if !h.Settle() || h.refusedAsRestricted("watch") {
		return
	}
	switch {
	case !spec.ArityOK(len(cmd.Args)):
		h.ReplyError(wire.ErrArity("watch"))
		return
	case len(h.watched.locks) > 0 && h.watched.db != h.client.db:
		h.ReplyError(wire.ErrWatchDatabase)
		return
	}
	var look *redlock.Watch
	var refusal wire.Error
	h.Busy(func() { look, refusal = h.service.Locks.Watch(h.Context(), h.client.db, cmd.Args[1:]) })
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	size := look.Size()
	if !h.mayHold(size) {
		h.ReplyError(wire.ErrTransactionSize)
		return
	}
	h.watched.bytes += size
	h.watched.locks, h.watched.db = append(h.watched.locks, look), h.client.db
	h.Reply(wire.OK)
}

// performUnwatch performs UNWATCH on both planes. It does not open an upstream connection,
// because a closed one watches nothing.
func (h *handler) performUnwatch(cmd wire.Command, spec *command.Spec) {
	if h.Upstream() == nil {
		if !spec.ArityOK(len(cmd.Args)) {
			h.ReplyError(wire.ErrArity("unwatch"))
			return
		}
		h.forgetWatched()
		h.Reply(wire.OK)
		return
	}
	if spec.ArityOK(len(cmd.Args)) {
		h.forgetWatched()
	}
	h.relay(cmd, upstream.Expectation{Count: 1})
}

func (h *handler) forgetWatched() {
	h.Env.Budget.Release(h.watched.bytes)
	h.watched = watched{}
}

// refusesLocks returns the reason why the transaction cannot run on the masters, or "" if it
// can.
func (h *handler) refusesLocks() wire.Error {
	for _, call := range h.transaction.calls {
		if refusal := refusedOnLocks(call.Name(), call.Route); refusal != "" {
			return refusal
		}
	}
	switch {
	case h.watched.upstream:
		return wire.ErrCrossLock
	case len(h.watched.locks) > 0 && h.watched.db != h.client.db:
		return wire.ErrWatchDatabase
	}
	return ""
}

// refusedOnLocks returns the reason why a command cannot be in a transaction on lock keys,
// or "" if it can.
func refusedOnLocks(name string, to route.Route) wire.Error {
	switch {
	case len(to.Keys) > 0 && to.Plane == route.Upstream:
		return wire.ErrCrossLock
	case to.Spec.Is(command.NeverOnLocks):
		return wire.ErrNotOnLockKeys(name)
	case len(to.Keys) == 0 && to.Plane == route.Upstream && !to.Spec.Is(command.OnMasters):
		return wire.ErrNotWithLockKeys(name)
	}
	return ""
}

// executeOnLocks performs EXEC on the masters. They run the whole transaction as one script.
func (h *handler) executeOnLocks() {
	if !h.Settle() {
		return
	}
	t := lock.Transaction{
		DB:       h.client.db,
		Commands: h.transaction.calls,
		Watches:  h.watched.locks,
		Version:  h.client.version,
	}
	copies, ok := h.holdCopies(h.transaction.bytes)
	if !ok {
		h.refuseTransaction(wire.ErrMemory)
		return
	}
	defer h.Env.Budget.Release(copies)
	for i := range t.Commands {
		t.Commands[i].Version = t.Version
	}
	h.Busy(func() {
		h.trackLocks(t.Commands...)
		h.lockReply = h.service.Locks.Exec(h.Context(), h.lockReply[:0], t)
	})
	h.leaveTransaction(string(h.lockReply))
}
