package pubsub

import (
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// Without an upstream the proxy itself confirms subscriptions to the locks'
// channels, so that clients can wait for locks. When the upstream is back such a
// client is disconnected, lest it misses what is published there: its library
// connects again and subscribes anew, as after a restart of its one Redis.

// subscribeHere confirms each name. What the masters have published since
// they were asked may follow at once.
func (c *Client) subscribeHere(of wire.Family, names []string) {
	l := c.listening.Load()
	c.outdatedAt.Store(c.hub.opened.Load() + 1)
	c.session.FlushWith(func(replies []byte) []byte {
		for _, name := range names {
			l.Confirm(wire.Confirmation{Family: of, Adds: true, Names: []string{name}})
			replies = c.appendConfirmation(replies, of, true, &name, l.Count())
		}
		return replies
	})
}

// unsubscribeHere confirms each name, or each that is subscribed to where none
// is given.
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
	c.leaveUnheard()
}

// appendConfirmation adds a confirmation to the replies. They reach the client
// whatever CLIENT REPLY said, as with Redis.
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

// RestrictedAlone is Restricted where no upstream refuses commands because of it.
func (c *Client) RestrictedAlone() bool {
	return c.Listens() && c.session.Upstream() == nil && c.Restricted()
}

// replayTracking tells an upstream that has just been opened that the client
// tracks keys, which was answered here while there was none. The client has
// seen the reply, so it does not see the upstream's.
func (c *Client) replayTracking() {
	if words := c.tracking.command(); words != nil && c.listening.Load() != nil {
		c.session.Insert(resp.AppendCommand(nil, words...), 1)
	}
}

// Opened is told that the client's upstream connection was opened.
func (c *Client) Opened() {
	c.replayTracking()
	c.hub.opened.Add(1)
	c.endIfOutdated()
}

// endIfOutdated ends a session whose subscriptions were confirmed without the
// upstream, once that has been reached. Any goroutine may ask.
func (c *Client) endIfOutdated() {
	l := c.listening.Load()
	if l == nil {
		return
	}
	if at := c.outdatedAt.Load(); at > 0 && c.hub.opened.Load() >= at && l.Subscribed() {
		c.session.MissedMessages("the upstream is back and does not know its subscriptions")
	}
}

// PublishesAlone tells whether PUBLISH is for the masters: it is meant for a lock's
// channel while the upstream is away, and every proxy's subscribers listen there.
func (c *Client) PublishesAlone(args [][]byte) bool {
	if c.session.Upstream() != nil || c.hub.subscribe == nil || len(args) != 3 {
		return false
	}
	return c.belongsToLocks(string(args[1])) && c.session.TryOpen() != ""
}
