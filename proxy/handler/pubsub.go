package handler

import (
	"context"
	"log/slog"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// performTracking performs CLIENT TRACKING and CLIENT CACHING.
func (h *Handler) performTracking(name string, cmd wire.Command, spec *command.Spec) {
	switch {
	case !h.mayAnswer(name, cmd.Args, spec):
	case name == "client|tracking":
		h.clients.Redirected(h.pubsub.PerformTracking(h.clients.MapRedirect(cmd)))
	default:
		h.pubsub.PerformCaching(cmd)
	}
}

// trackLocks reports lock commands that are about to be sent to the masters. The minder
// may own the client meanwhile.
func (h *Handler) trackLocks(calls ...lock.Command) {
	if !h.pubsub.Tracks() {
		return
	}
	commands := make([]pubsub.Command, len(calls))
	for i, call := range calls {
		commands[i] = pubsub.Command{DB: call.DB, Args: call.Args, Keys: call.Keys(), Route: call.Route}
	}
	h.pubsub.Begin(commands)
}

// pubsubHost is the handler as package pubsub sees it.
type pubsubHost struct{ *Handler }

func (h pubsubHost) Version() wire.Version { return h.client.Version }
func (h pubsubHost) Rules() route.Rules    { return h.Env.Active.Load().Router.Rules }

func (h pubsubHost) MayUseLocks() bool { return h.mayUseLocks() }

func (h pubsubHost) Covers(key []byte) bool { return h.Rules().Covers(route.AnyDB, key) }

func (h pubsubHost) Relay(cmd wire.Command, want upstream.Expectation) { h.relay(cmd, want) }

func (h pubsubHost) Peek(ctx context.Context, db int, name, key string) []byte {
	return h.service.Locks.Peek(ctx, db, name, key)
}

func (h pubsubHost) MaySubscribe(names, size int) bool {
	reached := config.LimitSubscriptions
	if size == 0 || names <= h.Env.Active.Load().Limits.Subscriptions {
		if h.Env.Budget.HasRoom(size) {
			return true
		}
		reached = config.LimitMemory
	}
	h.Env.Metrics.LimitReached(string(reached))
	return false
}

func (h pubsubHost) OutputLimit() int64 { return h.Env.Active.Load().Limits.Output }

func (h pubsubHost) Delivered(messages, invalidations int) {
	h.Env.Metrics.WokenUp(messages, invalidations)
}

func (h pubsubHost) Overflow(memory bool) {
	if memory {
		h.End(session.OverflowMemory)
	} else {
		h.End(session.Overflow)
	}
}

func (h pubsubHost) MissedMessages(reason string) {
	if !h.HasEnded(session.MissedMessages) {
		h.End(session.MissedMessages, slog.String("reason", reason))
	}
}
