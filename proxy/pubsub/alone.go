package pubsub

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// While the upstream is unreachable, the proxy itself confirms subscriptions to
// channels of locks, so that clients can wait for locks. It disconnects these clients
// when anybody has reached the upstream again, be it a client or the monitor, which asks the
// upstream from time to time. Else they would miss messages that are published there.
// Their libraries connect and subscribe again, as after a restart of their one Redis.

// subscribeHere confirms the names without the upstream. Messages that the masters have
// published meanwhile may follow at once.
func (c *Client) subscribeHere(of wire.Family, names []string) {
	l := c.listening.Load()
	c.outdatedAt.Store(c.hub.reached() + 1)
	c.session.FlushWith(func(replies []byte) []byte {
		for _, name := range names {
			l.Confirm(wire.Confirmation{Family: of, Adds: true, Names: []string{name}})
			replies = c.appendConfirmation(replies, of, true, &name, l.Count())
		}
		return replies
	})
}

// unsubscribeHere is subscribeHere for UNSUBSCRIBE. Without names it ends all
// subscriptions of the family.
func (c *Client) unsubscribeHere(of wire.Family, names []string) {
	l := c.listening.Load()
	all := len(names) == 0
	if all && l != nil {
		names = l.Confirmed(of)
	}
	c.session.FlushWith(func(replies []byte) []byte {
		for _, name := range names {
			if l != nil {
				l.Confirm(wire.Confirmation{Family: of, Names: []string{name}})
			}
			replies = c.appendConfirmation(replies, of, false, &name, l.Count())
		}
		if len(names) == 0 {
			replies = c.appendConfirmation(replies, of, false, nil, l.Count())
		}
		return replies
	})
	c.unsubscribeUnwanted()
}

// appendConfirmation adds a confirmation to the replies. As in Redis, CLIENT REPLY does
// not hide it.
func (c *Client) appendConfirmation(replies []byte, of wire.Family, adds bool, name *string, total int) []byte {
	replies = wire.AppendPushHeader(replies, 3, c.session.Version())
	replies = redcon.AppendBulkString(replies, of.Command(adds))
	if name == nil {
		replies = wire.AppendNull(replies, c.session.Version())
	} else {
		replies = redcon.AppendBulkString(replies, *name)
	}
	return redcon.AppendInt(replies, int64(total))
}

// RestrictedAlone tells whether the proxy itself must refuse commands in RESP2's subscribe
// mode, because the client has no upstream connection that would do so.
func (c *Client) RestrictedAlone() bool {
	return c.Listens() && c.session.Upstream() == nil && c.Restricted()
}

// replayTracking sends CLIENT TRACKING to an upstream connection that was just opened,
// if the proxy answered it while there was none. The client does not get the reply,
// because it has got one already.
func (c *Client) replayTracking() {
	if words := c.tracking.command(); words != nil && c.listening.Load() != nil {
		c.session.Insert(resp.AppendCommand(nil, words...), upstream.Expectation{To: upstream.ToNobody, Count: 1})
	}
}

// Opened is called after the client's upstream connection was opened.
func (c *Client) Opened() {
	c.replayTracking()
	c.endIfOutdated()
}

// endIfOutdated ends the session if the proxy confirmed its subscriptions without the
// upstream, and the upstream has been reached since. Any goroutine may call it.
func (c *Client) endIfOutdated() {
	l := c.listening.Load()
	if l == nil {
		return
	}
	if at := c.outdatedAt.Load(); at > 0 && c.hub.reached() >= at && l.Subscribed() {
		c.session.MissedMessages("the upstream is back and does not know its subscriptions")
	}
}

// PublishesAlone tells whether a PUBLISH goes to the masters: its channel is a lock's, and
// the upstream is unreachable. The subscribers of all proxies listen to the masters.
func (c *Client) PublishesAlone(args [][]byte) bool {
	if c.session.Upstream() != nil || c.hub.subscribe == nil || len(args) != 3 {
		return false
	}
	return c.belongsToLocks(string(args[1])) && c.session.TryOpen() != ""
}
