package handler

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A performer performs a command outside a transaction. It returns false if the command goes the way of its keys.
type performer func(h *Handler, name string, cmd wire.Command, to route.Route) bool

// byName has the performers of all commands that need more than the way of their keys. Ordinary commands have
// none. What a performer answers comes after the replies to all earlier commands.
var byName = map[string]performer{
	// which user the client is, and how it wants its replies
	"quit": always(func(h *Handler, _ string, _ wire.Command, _ route.Route) {
		h.Reply(wire.OK)
		h.End(session.Quit)
	}),
	"hello": checked((*Handler).performHello),
	"auth": checked(func(h *Handler, _ string, cmd wire.Command, _ route.Route) {
		h.Reply(h.authenticate(cmd.Args))
	}),
	"acl|whoami": func(h *Handler, name string, cmd wire.Command, to route.Route) bool {
		if h.Env.Active.Load().Users.AtUpstream && h.Upstream() != nil {
			return false
		}
		if h.mayAnswer(name, cmd.Args, to.Spec) {
			h.ReplyBytes(redcon.AppendBulkString(nil, h.account.Load().Name))
		}
		return true
	},
	"reset":           checked(func(h *Handler, _ string, _ wire.Command, _ route.Route) { h.reset() }),
	"select":          checked((*Handler).performSelect),
	"client|reply":    checked((*Handler).performReplyMode),
	"client|setname":  checked((*Handler).performClientSetting),
	"client|setinfo":  checked((*Handler).performClientSetting),
	"client|getname":  checked((*Handler).performClientSetting),
	"client|no-evict": checked((*Handler).performClientSetting),
	"client|no-touch": checked((*Handler).performClientSetting),
	"ping":            withoutUpstream((*Handler).performPing),
	"echo": withoutUpstream(func(h *Handler, _ string, cmd wire.Command, _ route.Route) {
		h.ReplyBytes(redcon.AppendBulk(nil, cmd.Args[1]))
	}),

	// both planes
	"multi":   checked((*Handler).performMulti),
	"exec":    always((*Handler).performStray),
	"discard": always((*Handler).performStray),
	"watch": func(h *Handler, name string, cmd wire.Command, to route.Route) bool {
		switch to.Plane {
		case route.Locks:
			h.performWatch(cmd, to.Spec)
		case route.Upstream:
			h.relay(cmd, upstream.Expectation{Count: 1})
			h.multi.watched.upstream = h.multi.watched.upstream || to.Spec.ArityOK(len(cmd.Args)) && h.Upstream() != nil
		default:
			return false
		}
		return true
	},
	"unwatch":         always((*Handler).performUnwatch),
	"info":            checked((*Handler).performInfo),
	"script|load":     always((*Handler).performScript),
	"script|exists":   always((*Handler).performScript),
	"script|flush":    always((*Handler).performScript),
	"script|kill":     always((*Handler).performScript),
	"client|tracking": checked((*Handler).performTracking),
	"client|caching":  checked((*Handler).performCaching),
	"publish": func(h *Handler, name string, cmd wire.Command, to route.Route) bool {
		if !h.publishesHere(cmd.Args) {
			return false
		}
		h.performOnLocks(name, cmd.Args, to)
		return true
	},

	// the upstream, with more than one reply, or with something to note here
	"monitor": always(func(h *Handler, _ string, cmd wire.Command, _ route.Route) {
		h.relay(cmd, upstream.Expectation{Kind: upstream.Stream, Count: 1})
		h.monitoring = h.Settle() && h.InPipe()
	}),
	"wait":       (*Handler).refusedToWait,
	"waitaof":    (*Handler).refusedToWait,
	"eval":       (*Handler).performScriptOnUpstream,
	"eval_ro":    (*Handler).performScriptOnUpstream,
	"evalsha":    (*Handler).performScriptOnUpstream,
	"evalsha_ro": (*Handler).performScriptOnUpstream,
}

// performing is the form of a performer that always performs.
type performing func(h *Handler, name string, cmd wire.Command, to route.Route)

func always(do performing) performer {
	return func(h *Handler, name string, cmd wire.Command, to route.Route) bool {
		do(h, name, cmd, to)
		return true
	}
}

// checked waits for the replies to all earlier commands, and refuses a wrong number of arguments and what RESP2's
// subscribe mode forbids.
func checked(do performing) performer {
	return func(h *Handler, name string, cmd wire.Command, to route.Route) bool {
		if h.mayAnswer(name, cmd.Args, to.Spec) {
			do(h, name, cmd, to)
		}
		return true
	}
}

// withoutUpstream is checked for commands that an open upstream connection gets.
func withoutUpstream(do performing) performer {
	return func(h *Handler, name string, cmd wire.Command, to route.Route) bool {
		return h.Upstream() == nil && checked(do)(h, name, cmd, to)
	}
}
