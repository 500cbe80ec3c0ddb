package pubsub

import (
	"bytes"
	"slices"
	"strings"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// CLIENT TRACKING goes to the upstream, which sends the invalidations of its own keys. For
// lock keys the proxy does the same: it remembers which of them a client has read. When
// the masters report a change of one, the client gets one invalidation. With REDIRECT
// clients get none for lock keys, because only the upstream knows the other client.

// tracking is the session's state of CLIENT TRACKING.
type tracking struct {
	mode *trackingMode // nil: off

	// caching means that CLIENT CACHING was sent for the next command. The upstream gets
	// it only if that command goes there; told means that it has got it.
	caching, told bool

	present []string // keys of the lock command under way
	own     *ownCommand
}

// command is the CLIENT TRACKING that sets this mode at an upstream, or nil if tracking is
// off.
func (t *tracking) command() []string {
	if t.mode == nil {
		return nil
	}
	words := []string{"CLIENT", "TRACKING", "ON"}
	for _, option := range []struct {
		set  bool
		word string
	}{{t.mode.Broadcast, "BCAST"}, {t.mode.OptIn, "OPTIN"}, {t.mode.OptOut, "OPTOUT"}, {t.mode.NoLoop, "NOLOOP"}} {
		if option.set {
			words = append(words, option.word)
		}
	}
	for _, prefix := range t.mode.Prefixes {
		words = append(words, "PREFIX", prefix)
	}
	return words
}

// remembers tells whether to remember the keys that the next command reads.
func (t *tracking) remembers() bool {
	switch {
	case t.mode == nil || t.mode.Broadcast || t.mode.Redirected:
		return false
	case t.mode.OptIn:
		return t.caching
	}
	return !t.caching
}

// A Command is a command on lock keys that is about to be sent to the masters.
type Command struct {
	DB    int
	Args  [][]byte
	Keys  [][]byte // its lock keys
	Route route.Route
}

// PerformTracking performs CLIENT TRACKING, whose arity is right. Without an upstream the
// proxy answers, because some clients send this command when they connect and take locks
// only afterwards. PerformTracking returns false if it has refused the command.
func (c *Client) PerformTracking(cmd wire.Command) (done bool) {
	next, refusal := parseMode(cmd.Args[2:], c.tracking.mode)
	if unreachable := c.session.TryOpen(); unreachable == "" {
		reply, ok := c.session.Ask(cmd.AsArray())
		if !ok {
			return false
		}
		if done = reply[0] == '+' && refusal == ""; done {
			c.track(next)
		}
		c.session.ReplyBytes(reply)
		return done
	} else if refusal == "" && next != nil && next.Redirected {
		refusal = unreachable
	}
	if refusal != "" {
		c.session.ReplyError(refusal)
		return false
	}
	c.track(next)
	c.session.Reply(wire.OK)
	return true
}

// track sets the mode, and has the masters report the changes that it needs.
func (c *Client) track(next *trackingMode) {
	c.tracking.mode, c.tracking.caching = next, false
	if c.hub.subscribe == nil || !c.session.MayUseLocks() {
		return
	}
	if next == nil || next.Redirected {
		if l := c.listening.Load(); l != nil {
			l.Track(nil)
			l.ForgetKeys()
			c.unsubscribeUnwanted()
		}
		return
	}
	l := c.listen()
	l.Track(next)
	if !next.Broadcast {
		return
	}
	prefixes := next.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	c.session.Send()
	c.session.Busy(func() { l.TrackPrefixes(c.session.Context(), prefixes) })
}

// PerformCaching performs CLIENT CACHING, whose arity is right. The proxy answers it,
// because it is about the next command, and nobody knows yet where that will go.
func (c *Client) PerformCaching(cmd wire.Command) {
	t := &c.tracking
	yes, no := wire.IsWord(cmd.Args[2], "YES"), wire.IsWord(cmd.Args[2], "NO")
	switch {
	case t.mode == nil:
		c.session.ReplyError(wire.ErrCachingOff)
	case yes && !t.mode.OptIn:
		c.session.ReplyError(wire.ErrCachingYes)
	case no && !t.mode.OptOut:
		c.session.ReplyError(wire.ErrCachingNo)
	case !yes && !no:
		c.session.ReplyError(wire.ErrSyntax)
	default:
		t.caching, t.told = true, false
		c.session.Reply(wire.OK)
	}
}

// SendCaching sends the upstream the client's CLIENT CACHING, before the command that it is
// about. The connection must be open.
func (c *Client) SendCaching() {
	t := &c.tracking
	if !t.caching || t.told || c.session.InPipe() {
		return
	}
	t.told = true
	form := "NO" // only one is allowed in each mode
	if t.mode.OptIn {
		form = "YES"
	}
	c.session.Insert(resp.AppendCommand(nil, "CLIENT", "CACHING", form), upstream.Expectation{To: upstream.ToNobody, Count: 1})
}

// Tracks tells whether lock commands must be reported to Begin.
func (c *Client) Tracks() bool {
	return c.tracking.mode != nil && !c.tracking.mode.Redirected && c.Listens()
}

// Begin remembers the keys of lock commands that are about to be sent to the masters, so
// that no change from then on is missed. The minder may own the client meanwhile.
func (c *Client) Begin(commands []Command) {
	t, l := &c.tracking, c.listening.Load()
	t.present = nil
	reads := false
	for _, call := range commands {
		for _, key := range call.Keys {
			if text := string(key); !slices.Contains(t.present, text) {
				t.present = append(t.present, text)
			}
		}
		reads = reads || !call.Route.Spec.Write()
	}
	if t.mode.NoLoop {
		t.own = newOwnCommand(commands)
	}
	remember := t.remembers() && reads
	l.Begin(t.present, remember)
	if remember {
		l.TrackKeys(c.session.Context(), t.present)
	}
}

// Performed is called when a command's reply is pending or will come from the upstream.
// lockReply is the masters' reply, if they were asked. queues tells whether the command was
// queued for EXEC.
func (c *Client) Performed(name string, lockReply []byte, queues bool) {
	t := &c.tracking
	if t.mode == nil {
		return
	}
	if len(t.present) > 0 {
		if t.own != nil && didNothing(lockReply) {
			t.own = nil
		}
		if l := c.listening.Load(); l != nil {
			l.Answered(t.present, t.own)
			c.session.Flush() // invalidations of these keys may follow
			l.Replied(t.present)
		}
		t.present, t.own = nil, nil
	}
	if t.caching && !queues && !strings.HasPrefix(name, "client") {
		t.caching = false
	}
}

// AwaitInvalidations returns when the client has the invalidations that the upstream has sent so
// far. The caller then gives a reply that must come after them.
func (c *Client) AwaitInvalidations() {
	t := &c.tracking
	if t.mode == nil || t.mode.Redirected || t.caching || c.session.Version() == wire.RESP2 || c.session.Upstream() == nil || !c.session.Settle() {
		return
	}
	_, _ = c.session.Ask(resp.AppendCommand(nil, "PING"))
}

const (
	// ownValueLeast is the least length of a value that identifies a client. Clients may
	// share shorter ones, such as "1".
	ownValueLeast = 16
	// ownValuesMost bounds the bytes of the values that are kept of one command.
	ownValuesMost = 1024
)

// newOwnCommand keeps the values that the commands may store. It returns nil if none of
// them identifies this client.
func newOwnCommand(commands []Command) *ownCommand {
	var values [][]byte
	db, size := 0, 0
	for _, call := range commands {
		db = call.DB
		for i, arg := range call.Args {
			isText := i == 1 && call.Route.Spec.Is(command.Script)
			if i == 0 || isText || len(arg) < ownValueLeast || slices.Contains(call.Route.Keys, i) {
				continue
			}
			if size += len(arg); size > ownValuesMost {
				return nil
			}
			values = append(values, bytes.Clone(arg))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return &ownCommand{db: db, values: values}
}

// didNothing recognises the replies by which most commands say that they changed nothing.
// A few say the opposite by one of them, as Redisson's scripts by nil. Their clients get
// an invalidation too many.
func didNothing(reply []byte) bool {
	switch string(reply) {
	case "$-1\r\n", "*-1\r\n", "_\r\n", ":0\r\n", "#f\r\n":
		return true
	}
	return resp.IsError(reply)
}
