package pubsub

import (
	"slices"
	"sync/atomic"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A Hub is what the clients of a process share.
type Hub struct {
	subscribe Subscribe
	memory    *conn.Budget
	metrics   *metrics.Metrics
	opened    atomic.Int64 // how often an upstream connection was opened, for any client
}

// NewHub makes a Hub. subscribe is nil if the masters are not listened to.
func NewHub(subscribe Subscribe, memory *conn.Budget, m *metrics.Metrics) *Hub {
	return &Hub{subscribe: subscribe, memory: memory, metrics: m}
}

// A Client is what one client wants to be told of: its subscriptions, and the keys
// that it tracks. The goroutine of its session calls it, where nothing else is said.
type Client struct {
	hub     *Hub
	session Session

	// listening is nil while nothing is wanted of the masters. Only the session
	// changes it.
	listening atomic.Pointer[listener]
	// outdatedAt: the upstream was away when subscriptions were confirmed, so that
	// it does not know them. Once it has been opened so often, for anybody, messages
	// may be published there. 0: it knows them.
	outdatedAt atomic.Int64

	tracking tracking
}

// NewClient is for a client of that session, which closes it.
func NewClient(hub *Hub, session Session) *Client { return &Client{hub: hub, session: session} }

// A client's subscriptions are the upstream's, whose confirmations and counts
// it sees. A script on lock keys publishes on the masters, though, and nowhere
// else, so a channel that may carry wake-ups is subscribed to there as well,
// and before the upstream confirms: a client tries the lock once more after
// that confirmation and then relies on being told.

// PerformSubscription is the SUBSCRIBE and UNSUBSCRIBE families. Sharded
// channels are the upstream's alone.
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

// unsubscribe is answered here where there is no upstream connection: nothing
// can be subscribed to there.
func (c *Client) unsubscribe(of wire.Family, cmd wire.Command) {
	names := textsOf(cmd.Args[1:])
	switch {
	case c.session.Upstream() == nil:
		c.unsubscribeHere(of, names)
	case c.listening.Load() == nil:
		c.forwardSubscription(of, false, cmd, nil)
	default:
		c.forwardSubscription(of, false, cmd, names)
		if c.session.Settle() {
			c.leaveUnheard()
		}
	}
}

// forwardSubscription lets the upstream answer. names are those in the command
// if the session is to learn what becomes of each.
func (c *Client) forwardSubscription(of wire.Family, adds bool, cmd wire.Command, names []string) {
	left := len(cmd.Args) - 1
	if adds {
		left = max(left, 1) // the error for their lack
	}
	c.session.Relay(cmd, upstream.Expectation{Kind: upstream.Confirmations, Family: of, Adds: adds, Count: left, Names: names})
}

// carriesWakeUps tells whether something that is published on the masters may
// be meant for who subscribes to this channel or pattern. Whether a pattern
// matches a lock's channel cannot be told from its looks.
func (c *Client) carriesWakeUps(of wire.Family, name string) bool {
	if isNotification([]byte(name)) {
		return false
	}
	own, allowed := c.session.OwnRules()
	return allowed && (of == wire.FamilyPattern && !own.DenySome() || own.CoversChannel([]byte(name)))
}

// belongsToLocks: the channel, or every channel that such a pattern is meant
// for, is a lock's.
func (c *Client) belongsToLocks(name string) bool {
	return c.session.Rules().CoversChannel([]byte(name))
}

// SubscribesToLocks finds a command that cannot be had where the upstream's
// confirmations are not seen: what scripts publish could not be passed on.
func (c *Client) SubscribesToLocks(name string, args [][]byte) bool {
	of, adds, ok := wire.ConfirmationOf([]byte(name))
	return ok && adds && of != wire.FamilyShard && c.hub.subscribe != nil &&
		slices.ContainsFunc(args[1:], c.session.Rules().CoversChannel)
}

// maySubscribe tells whether no limit keeps the masters from being asked for names
// too.
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

// listenTo returns when the masters are subscribed to. What comes is kept from
// the client until the subscription is confirmed to it.
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

// leaveUnheard ends at the masters what the client has ended. No reply is pending,
// so that every confirmation has been seen.
func (c *Client) leaveUnheard() {
	if l := c.listening.Load(); l != nil && l.LeaveUnheard() {
		c.Close()
	}
}

// listen makes the session's part in what the masters tell.
func (c *Client) listen() *listener {
	if l := c.listening.Load(); l != nil {
		return l
	}
	l := startListener(c.session.Context(), c.session, listenerOptions{
		Source: c.hub.subscribe, Out: c.session.Writer(), Memory: c.hub.memory, Version: c.session.Version(),
	})
	c.hub.metrics.ClientListens(1)
	c.outdatedAt.Store(0)
	c.listening.Store(l)
	return l
}

// Confirmed is told of the upstream's confirmations, with the client's writing
// side taken.
func (c *Client) Confirmed(said wire.Confirmation) {
	if l := c.listening.Load(); l != nil {
		l.Confirm(said)
	}
}

// Close returns when nothing that the masters tell reaches the client
// any more.
func (c *Client) Close() {
	if l := c.listening.Load(); l != nil {
		c.listening.Store(nil)
		l.Close()
		c.hub.metrics.ClientListens(-1)
	}
}

// Restricted tells whether the client is in RESP2's subscribe mode. Only while
// no reply is pending.
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

// Tracking tells whether CLIENT TRACKING is on, and whether it is with BCAST and REDIRECT.
func (c *Client) Tracking() (on, broadcast, redirected bool) {
	m := c.tracking.mode
	return m != nil, m != nil && m.Broadcast, m != nil && m.Redirected
}

// Reset makes the client one that wants to be told nothing.
func (c *Client) Reset() {
	c.Close()
	c.tracking = tracking{}
}

// Listens tells whether the masters may have something to tell. Any goroutine may
// ask.
func (c *Client) Listens() bool { return c.listening.Load() != nil }

// Swept looks for what no command shows, and tells whether the client may be silent
// for long because it waits for messages. Any goroutine may call it.
func (c *Client) Swept() (waits bool) {
	c.endIfOutdated()
	l := c.listening.Load()
	return l != nil && l.Subscribed()
}

// Speak says which protocol the client reads from here on. The caller holds the
// client's writing side.
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
