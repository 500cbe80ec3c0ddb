package config

import (
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// These functions check the commands of a user who does not have all rights. If a command
// has keys, its keys decide. In SUBSCRIBE, PSUBSCRIBE and PUBLISH the channels decide. For
// every other command a trait of the command decides.

// Forbids returns the error for a command that the user may not send, or "".
func (a *Account) Forbids(rules route.Rules, name string, args [][]byte, to route.Route) wire.Error {
	r := a.May
	if r == RightBoth {
		return ""
	}
	var channels [][]byte // or patterns
	switch name {
	case "subscribe", "psubscribe":
		channels = args[1:]
	case "publish":
		channels = args[1:min(2, len(args))]
	}
	switch {
	case to.Spec.Is(route.Console) && to.Spec.ArityOK(len(args)) && (r&RightLocks == 0 || !to.Spec.Is(route.ForLockers)):
		return wire.ErrNoPermCommand(name)
	case (name == "client|list" || name == "client|kill") && to.Spec.ArityOK(len(args)): // they are about all users
		return wire.ErrNoPermCommand(name)
	case to.Spec.Is(route.BeforeAuth) || name == "acl|whoami" || route.AsksForMaintenance(args):
	case to.Spec != nil && !to.Spec.ArityOK(len(args)) && !to.Spec.Is(route.ForLockers):
		if r&RightUpstream == 0 {
			return wire.ErrArity(to.Spec.Name)
		}
	case to.Plane != route.Upstream:
		if to.Plane != route.Locks || r&RightLocks == 0 {
			return wire.ErrNoPermKeys
		}
	case len(channels) > 0:
		for _, channel := range channels {
			if ofLocks := rules.CoversChannel(channel); ofLocks && r&RightLocks == 0 || !ofLocks && r&RightUpstream == 0 {
				return wire.ErrNoPermChannels
			}
		}
	case r&RightUpstream != 0:
	case len(to.Keys) > 0:
		return wire.ErrNoPermKeys
	case to.Spec == nil:
		return to.Spec.Check(args)
	case !to.Spec.Is(route.ForLockers):
		return wire.ErrNoPermCommand(name)
	}
	return ""
}
