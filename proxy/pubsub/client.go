package pubsub

import (
	"slices"
	"sync/atomic"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A Hub is the state that all clients of a process share.
type Hub struct {
	subscribe Subscribe
	memory    *conn.Budget
	metrics   *metrics.Metrics
	reached   func() int64 // how often anybody in this process has reached the upstream
}

// NewHub makes a Hub. If subscribe is nil, no client listens to the masters. reached counts
// how often anybody in the process has reached the upstream; any goroutine may call it.
func NewHub(subscribe Subscribe, memory *conn.Budget, m *metrics.Metrics, reached func() int64) *Hub {
	return &Hub{subscribe: subscribe, memory: memory, metrics: m, reached: reached}
}

// A Client has the subscriptions of one client and the keys that it tracks. Its session's
// goroutine calls its methods, unless they say otherwise.
type Client struct {
	hub     *Hub
	session Session

	// listening is nil while the client wants nothing from the masters. Only the session's
	// goroutine changes it.
	listening atomic.Pointer[listener]
	// outdatedAt is for subscriptions that were confirmed without the upstream, which
	// does not know them. When hub.reached has come to outdatedAt, the upstream is back, and
	// the client may miss messages that are published there. 0: there are none.
	outdatedAt atomic.Int64

	tracking tracking
}

// NewClient makes the Client of a session, which must Close it.
func NewClient(hub *Hub, session Session) *Client { return &Client{hub: hub, session: session} }

// A client subscribes at the upstream, and sees the upstream's confirmations and counts.
// But a script on lock keys publishes on the masters, and nowhere else. So the proxy also
// subscribes at the masters to every channel that may carry wake-ups. It does so before
// the upstream confirms: after the confirmation a client tries the lock once more, and
// then waits for a message.

// PerformSubscription performs the SUBSCRIBE and UNSUBSCRIBE families. Only the upstream
// has sharded channels.
func (c *Client) PerformSubscription(name string, cmd wire.Command) {
	of, adds, _ := wire.ConfirmationOf([]byte(name))
	switch {
	case of == wire.FamilyShard || c.hub.subscribe == nil:
		c.forwardSubscription(of, adds, cmd, nil)
	case adds:
		c.subscribe(of, cmd)
	default:
		c.unsubscribe(of, cmd)
	}
}

func (c *Client) subscribe(of wire.Family, cmd wire.Command) {
	names := textsOf(cmd.Args[1:])
	if !slices.ContainsFunc(names, func(name string) bool { return c.carriesWakeUps(of, name) }) {
		c.forwardSubscription(of, true, cmd, nil)
		return
	}
	if !c.session.Settle() {
		return
	}
	if !c.maySubscribe(of, names) {
		c.session.ReplyError(wire.ErrSubscriptions)
		return
	}
	refusal := c.session.TryOpen()
	if refusal != "" && slices.ContainsFunc(names, func(name string) bool { return !c.belongsToLocks(name) }) {
		c.session.ReplyError(refusal)
		return
	}
	c.listenTo(of, names)
	if refusal != "" {
		c.subscribeHere(of, names)
		return
	}
	c.forwardSubscription(of, true, cmd, names)
}

// unsubscribe ends subscriptions. The proxy answers if there is no upstream connection,
// because then the upstream has no subscriptions of this client.
func (c *Client) unsubscribe(of wire.Family, cmd wire.Command) {
	names := textsOf(cmd.Args[1:])
	switch {
	case c.session.Upstream() == nil:
		if c.session.Settle() { // shared connections may still owe replies
			c.unsubscribeHere(of, names)
		}
	case c.listening.Load() == nil:
		c.forwardSubscription(of, false, cmd, nil)
	default:
		c.forwardSubscription(of, false, cmd, names)
		if c.session.Settle() {
			c.unsubscribeUnwanted()
		}
	}
}

// forwardSubscription forwards the command to the upstream. names are the names in the
// command if Confirmed must get the result for each, and nil otherwise.
func (c *Client) forwardSubscription(of wire.Family, adds bool, cmd wire.Command, names []string) {
	left := len(cmd.Args) - 1
	if adds {
		left = max(left, 1) // without names the upstream answers one error
	}
	c.session.Relay(cmd, upstream.Expectation{Kind: upstream.Confirmations, Family: of, Adds: adds, Count: left, Names: names})
}

// carriesWakeUps tells whether messages on the masters may be for subscribers of this
// channel or pattern. Every pattern counts, because its text does not show whether it
// matches a channel of a lock.
func (c *Client) carriesWakeUps(of wire.Family, name string) bool {
	if isNotification([]byte(name)) {
		return false
	}
	return c.session.MayUseLocks() && (of == wire.FamilyPattern || c.belongsToLocks(name))
}

// belongsToLocks tells whether the channel is a lock's. For a pattern it tells whether all
// channels that the pattern is meant for are channels of locks.
func (c *Client) belongsToLocks(name string) bool {
	return c.session.Rules().CoversChannel([]byte(name))
}

// SubscribesToLocks tells whether a command subscribes to channels of locks. It must be
// refused where the proxy does not see the upstream's confirmations, because messages of
// the masters could not be delivered there.
func (c *Client) SubscribesToLocks(name string, args [][]byte) bool {
	of, adds, ok := wire.ConfirmationOf([]byte(name))
	return ok && adds && of != wire.FamilyShard && c.hub.subscribe != nil &&
		slices.ContainsFunc(args[1:], c.session.Rules().CoversChannel)
}

// maySubscribe tells whether the limits allow the subscriptions to names at the masters.
func (c *Client) maySubscribe(of wire.Family, names []string) bool {
	count, size := 0, 0
	l := c.listening.Load()
	if l != nil {
		count = l.Asked()
	}
	for _, name := range names {
		if l != nil && l.Asks(of, name) {
			continue
		}
		if c.carriesWakeUps(of, name) {
			count++
			size += len(name) + NameOverhead
		}
	}
	return c.session.MaySubscribe(count, size)
}

// listenTo subscribes to names at the masters, and returns when they have confirmed. The
// client gets no message before its own confirmation.
func (c *Client) listenTo(of wire.Family, names []string) {
	l := c.listen()
	var missing []string
	for _, name := range names {
		if !c.carriesWakeUps(of, name) {
			continue
		}
		if l.Expect(of, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return
	}
	c.session.Send()
	c.session.Busy(func() { l.Ask(c.session.Context(), of, missing...) })
}

// unsubscribeUnwanted ends the subscriptions at the masters that the client has ended. No reply
// may be pending, so that every confirmation has been seen.
func (c *Client) unsubscribeUnwanted() {
	if l := c.listening.Load(); l != nil && l.UnsubscribeUnwanted() {
		c.Close()
	}
}

// listen returns the listener, and starts one if there is none.
func (c *Client) listen() *listener {
	if l := c.listening.Load(); l != nil {
		return l
	}
	l := startListener(c.session.Context(), c.session, c.hub.subscribe, c.session.Writer(), c.hub.memory, c.session.Version())
	c.hub.metrics.ClientListens(1)
	c.outdatedAt.Store(0)
	c.listening.Store(l)
	return l
}

// Confirmed is called for each confirmation of the upstream, with the client's write lock
// held.
func (c *Client) Confirmed(said wire.Confirmation) {
	if l := c.listening.Load(); l != nil {
		l.Confirm(said)
	}
}

// Close ends the listener. After it the client gets nothing more from the masters. The
// Client may be used again.
func (c *Client) Close() {
	if l := c.listening.Load(); l != nil {
		c.listening.Store(nil)
		l.Close()
		c.hub.metrics.ClientListens(-1)
	}
}

// Restricted tells whether the client is in RESP2's subscribe mode. No reply may be
// pending.
func (c *Client) Restricted() bool {
	if up := c.session.Upstream(); up != nil {
		return up.Restricted()
	}
	l := c.listening.Load()
	return l != nil && c.session.Version() == wire.RESP2 && l.Count() > 0
}

// Subscriptions are the numbers of subscriptions by wire.Family. Any goroutine may call it.
func (c *Client) Subscriptions() (count [3]int) {
	if up := c.session.Upstream(); up != nil {
		return up.Subscriptions()
	}
	if l := c.listening.Load(); l != nil {
		count[wire.FamilyChannel], count[wire.FamilyPattern] = len(l.Confirmed(wire.FamilyChannel)), len(l.Confirmed(wire.FamilyPattern))
	}
	return count
}

// Tracking tells whether CLIENT TRACKING is on, whether with BCAST, and whether CLIENT
// CACHING was sent for the next command.
func (c *Client) Tracking() (on, broadcast, caching bool) {
	m := c.tracking.mode
	return m != nil, m != nil && m.Broadcast, m != nil && c.tracking.caching
}

// Reset ends all subscriptions and tracking.
func (c *Client) Reset() {
	c.Close()
	c.tracking = tracking{}
}

// Listens tells whether the client may get messages or invalidations from the masters. Any
// goroutine may ask.
func (c *Client) Listens() bool { return c.listening.Load() != nil }

// Swept makes the check that no command makes (endIfOutdated). It tells whether the client
// may be silent for long because it waits for messages. Any goroutine may call it.
func (c *Client) Swept() (waits bool) {
	c.endIfOutdated()
	l := c.listening.Load()
	return l != nil && l.Subscribed()
}

// Speak sets the version of the protocol that the client reads from now on. The caller
// holds the client's write lock.
func (c *Client) Speak(version wire.Version) {
	if l := c.listening.Load(); l != nil {
		l.Speak(version)
	}
}

func textsOf(args [][]byte) []string {
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = string(arg)
	}
	return texts
}
