package proxy

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// watched is what WATCH has put in the way of the next EXEC. It ends with
// EXEC, DISCARD, UNWATCH and RESET.
type watched struct {
	locks    []*redlock.Watch
	db       int  // of locks
	bytes    int  // what locks take of the server's memory
	upstream bool // the upstream watches keys of its own
}

func (w *watched) any() bool { return len(w.locks) > 0 || w.upstream }

// performWatch looks at lock keys on the masters.
func (s *session) performWatch(cmd wire.Command, spec *command.Spec) {
	if !s.settle() || s.refusedAsRestricted("watch") {
		return
	}
	switch {
	case !spec.ArityOK(len(cmd.Args)):
		s.reply(wire.ErrArity("watch"))
		return
	case len(s.watched.locks) > 0 && s.watched.db != s.client.db:
		s.reply(wire.ErrWatchDatabase)
		return
	}
	s.watch.begin()
	look, refusal := s.server.cfg.locks.look(s.ctx, s.client.db, cmd.Args[1:])
	s.watch.end()
	if refusal != "" {
		s.reply(refusal)
		return
	}
	size := look.Size()
	if !s.mayHold(size) {
		s.reply(wire.ErrTransactionSize)
		return
	}
	s.watched.bytes += size
	s.watched.locks, s.watched.db = append(s.watched.locks, look), s.client.db
	s.reply(wire.OK)
}

// performUnwatch does not open an upstream that watches nothing.
func (s *session) performUnwatch(cmd wire.Command, spec *command.Spec) {
	if s.upstream.Load() == nil {
		if !spec.ArityOK(len(cmd.Args)) {
			s.reply(wire.ErrArity("unwatch"))
			return
		}
		s.forgetWatched()
		s.reply(wire.OK)
		return
	}
	if spec.ArityOK(len(cmd.Args)) {
		s.forgetWatched()
	}
	s.forward(cmd, debt{left: 1})
}

func (s *session) forgetWatched() {
	s.server.memory.Release(s.watched.bytes)
	s.watched = watched{}
}

// refusesLocks tells why a transaction cannot be one on lock keys, "" if it can.
func (s *session) refusesLocks() string {
	for _, call := range s.transaction.calls {
		if refusal := refusedOnLocks(call.commandName(), call.route); refusal != "" {
			return refusal
		}
	}
	switch {
	case s.watched.upstream:
		return wire.ErrCrossLock
	case len(s.watched.locks) > 0 && s.watched.db != s.client.db:
		return wire.ErrWatchDatabase
	}
	return ""
}

// refusedOnLocks tells why a command cannot stand in a transaction on lock
// keys, "" if it can.
func refusedOnLocks(name string, to route.Route) string {
	switch {
	case len(to.Keys) > 0 && to.Plane == route.Upstream:
		return wire.ErrCrossLock
	case to.Spec.Is(command.NeverOnLocks):
		return errorNotOnLockKeys(name)
	case len(to.Keys) == 0 && to.Plane == route.Upstream && !to.Spec.Is(command.OnMasters):
		return wire.ErrNotWithLockKeys(name)
	}
	return ""
}

// executeOnLocks is EXEC on the masters, all of it one run there.
func (s *session) executeOnLocks() {
	if !s.settle() {
		return
	}
	t := lockTransaction{
		db:       s.client.db,
		commands: s.transaction.calls,
		watches:  s.watched.locks,
		version:  s.client.version,
	}
	copies, ok := s.holdCopies(s.transaction.bytes)
	if !ok {
		s.leaveTransaction(wire.ErrMemory)
		return
	}
	defer s.server.memory.Release(copies)
	for i := range t.commands {
		t.commands[i].version = t.version
	}
	s.watch.begin()
	s.trackLocks(t.commands...)
	s.lockReply = s.server.cfg.locks.execute(s.ctx, s.lockReply[:0], t)
	s.watch.end()
	s.leaveTransaction(string(s.lockReply))
}
