package proxy

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// What a user may do who has not all rights. Keys decide where there are any,
// channels in the SUBSCRIBE family and PUBLISH, and else a trait of the command.

// channelsOf are the channels or patterns that a command names.
func channelsOf(name string, args [][]byte) [][]byte {
	switch name {
	case "subscribe", "psubscribe":
		return args[1:]
	case "publish":
		return args[1:min(2, len(args))]
	}
	return nil
}

// forbids returns the error for a command that these rights do not cover, ""
// if they do. lockChannel tells whether a channel or pattern belongs to locks.
func forbids(r config.Rights, name string, args [][]byte, to route.Route, lockChannel func([]byte) bool) string {
	channels := channelsOf(name, args)
	switch {
	case r == config.RightBoth || to.Spec.Is(command.BeforeAuth) || name == "acl|whoami" || asksForMaintenance(args):
	case to.Spec != nil && !to.Spec.ArityOK(len(args)) && !to.Spec.Is(command.ForLockers):
		if r&config.RightUpstream == 0 {
			return wire.ErrArity(to.Spec.Name)
		}
	case to.Plane != route.Upstream:
		if to.Plane != route.Locks || r&config.RightLocks == 0 {
			return wire.ErrNoPermKeys
		}
	case len(channels) > 0:
		for _, channel := range channels {
			if needed := rightOnChannel(lockChannel(channel)); r&needed == 0 {
				return wire.ErrNoPermChannels
			}
		}
	case r&config.RightUpstream != 0:
	case len(to.Keys) > 0:
		return wire.ErrNoPermKeys
	case to.Spec == nil:
		return wire.ErrUnknownCommand(args)
	case !to.Spec.Is(command.ForLockers):
		return wire.ErrNoPermCommand(name)
	}
	return ""
}

func rightOnChannel(ofLocks bool) config.Rights {
	if ofLocks {
		return config.RightLocks
	}
	return config.RightUpstream
}

// user is who the session acts for by the settings in force, nil if that is
// nobody. A user who was removed meanwhile ends the session; what the user may
// not do any more is not done at EXEC either.
func (s *session) user(now *config.Settings) *config.Account {
	known := s.account.Load()
	if known != nil && now.Users.Has(known) {
		return known
	}
	if known == nil {
		if !now.Users.AtUpstream && s.upstream.Load() != nil {
			s.closing = true // the upstream was to judge, and has not accepted this connection
			return nil
		}
		if first := now.Users.First(); first != nil {
			s.admit(first) // a password was needed when the client came
			return first
		}
		return nil
	}
	user := now.Users.Successor(known)
	if user == nil {
		s.closing = true
		return nil
	}
	s.account.Store(user)
	if known.May&^user.May != 0 && s.transaction.state != transactionNone {
		s.abort("")
	}
	return user
}

// refusedForUser answers a command that the user may not give, in a
// transaction as in Redis by spoiling it.
func (s *session) refusedForUser(user *config.Account, name string, args [][]byte, to route.Route) bool {
	if user == nil {
		return false
	}
	all := s.server.settings().Router.Rules
	refusal := ""
	if user.May != config.RightBoth {
		refusal = forbids(user.May, name, args, to, all.CoversChannel)
	}
	if own := s.ownRules(user, all); refusal == "" && own.DenySome() {
		refusal = forbiddenLocks(own, all, s.database(), name, args, to)
	}
	if refusal == "" {
		return false
	}
	s.refuse(refusal)
	return true
}

// ownRules are the lock rules as the session's user has them. They are made
// anew only when the user or the rules have changed.
func (s *session) ownRules(user *config.Account, all route.Rules) route.Rules {
	if s.own.of != user || len(s.own.from) != len(all) || len(all) > 0 && &s.own.from[0] != &all[0] {
		s.own.of, s.own.from, s.own.rules = user, all, all.ForUser(user.Name)
	}
	return s.own.rules
}

// forbiddenLocks returns the error for a command on locks that only others may
// use, "" if there is none in it. own are the rules of the user, all those of
// everybody.
func forbiddenLocks(own, all route.Rules, db int, name string, args [][]byte, to route.Route) string {
	for i, at := range to.Keys {
		if to.Lock[i] && !own.Covers(db, args[at]) {
			return wire.ErrNoPermKeys
		}
	}
	for _, channel := range channelsOf(name, args) {
		if all.CoversChannel(channel) && !own.CoversChannel(channel) {
			return wire.ErrNoPermChannels
		}
	}
	return ""
}

// hearsLocks tells whether what happens on the masters may be told to the
// client.
func (s *session) hearsLocks() bool {
	user := s.account.Load()
	return user != nil && user.May&config.RightLocks != 0
}

// applyUsers does with the users of a new configuration what Redis does when users
// change: connections of who is no more are closed at once, and those that
// listen to what they may not hear any more. Sessions find all else out with
// their next command.
// rules are the lock rules that hold now, was those before.
func (srv *proxyServer) applyUsers(now *config.Accounts, rules, was route.Rules) {
	for _, s := range srv.all() {
		known := s.account.Load()
		if known == nil {
			continue
		}
		user := now.Successor(known)
		if user == nil || s.listens() && (known.May&^user.May != 0 || rules.DeniesMore(was, user.Name)) {
			s.cutOff()
		}
	}
}

// listens tells whether the client may be told what it has not just asked for.
// Any goroutine may ask.
func (s *session) listens() bool {
	up := s.upstream.Load()
	return s.listening.Load() != nil || up != nil && up.owed.listens()
}
