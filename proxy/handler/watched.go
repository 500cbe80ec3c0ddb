package handler

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
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
func (h *Handler) performWatch(cmd wire.Command, spec *command.Spec) {
	if !h.mayAnswer("watch", cmd.Args, spec) {
		return
	}
	if len(h.watched.locks) > 0 && h.watched.db != h.client.DB {
		h.ReplyError(wire.ErrWatchDatabase)
		return
	}
	var look *redlock.Watch
	var refusal wire.Error
	h.busyOnLocks(func() { look, refusal = h.service.Locks.Watch(h.Context(), h.client.DB, cmd.Args[1:]) })
	if refusal != "" {
		h.ReplyError(refusal)
		return
	}
	size := look.Size()
	if int64(size+h.watched.bytes) > h.Env.Active.Load().Limits.LockCommand {
		h.ReplyError(h.reached(config.LimitLockCommand, wire.ErrTooLarge("content of the watched keys", config.LimitLockCommand)))
		return
	}
	if !h.reserve(size) {
		h.ReplyError(wire.ErrMemory)
		return
	}
	h.watched.bytes += size
	h.watched.locks, h.watched.db = append(h.watched.locks, look), h.client.DB
	h.Reply(wire.OK)
}

// performUnwatch performs UNWATCH on both planes. It does not open an upstream connection,
// because a closed one watches nothing.
func (h *Handler) performUnwatch(cmd wire.Command, spec *command.Spec) {
	refusal := spec.Check(cmd.Args)
	if refusal == "" {
		h.forgetWatched()
	}
	switch {
	case h.Upstream() != nil:
		h.relay(cmd, upstream.Expectation{Count: 1})
	case refusal != "":
		h.ReplyError(refusal)
	default:
		h.Reply(wire.OK)
	}
}

func (h *Handler) forgetWatched() {
	h.Env.Budget.Release(h.watched.bytes)
	h.watched = watched{}
}

// offLocks returns the reason why the watched keys keep a transaction in this database off
// the masters, or "".
func (w *watched) offLocks(db int) wire.Error {
	switch {
	case w.upstream:
		return wire.ErrCrossLock
	case len(w.locks) > 0 && w.db != db:
		return wire.ErrWatchDatabase
	}
	return ""
}

// executeOnLocks performs EXEC on the masters. They run the whole transaction as one script.
func (h *Handler) executeOnLocks() {
	if !h.Settle() {
		return
	}
	t := lock.Transaction{DB: h.client.DB, Commands: h.transaction.calls, Watches: h.watched.locks, Leases: h.holder(), Version: h.client.Version}
	copies, ok := h.holdCopies(h.transaction.bytes)
	if !ok {
		h.refuseTransaction(wire.ErrMemory)
		return
	}
	defer h.Env.Budget.Release(copies)
	for i := range t.Commands {
		t.Commands[i].Version = t.Version
	}
	h.busyOnLocks(func() {
		h.trackLocks(t.Commands...)
		h.lockReply = h.service.Locks.Exec(h.Context(), h.lockReply[:0], t)
	})
	h.leaveTransaction(string(h.lockReply))
}
