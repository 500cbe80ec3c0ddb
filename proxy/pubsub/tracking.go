package pubsub

import (
	"bytes"
	"slices"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// CLIENT TRACKING goes to the upstream, which tells of the upstream's keys. For
// lock keys the proxy does what one Redis would: it remembers which of them a
// client has read, and tells it once when the masters say that one was changed.
// With REDIRECT the upstream alone is asked, for it alone knows the other client.

// tracking is a session's own side of CLIENT TRACKING.
type tracking struct {
	mode *trackingMode // nil: off

	// caching: CLIENT CACHING made the next command an exception. It is held
	// back until it is known which side that command goes to; told says that the
	// upstream knows.
	caching, told bool

	present  []string // keys of the lock command under way
	own      *ownCommand
	answered []string // keys of lock commands whose replies are pending
}

// command is CLIENT TRACKING as an upstream is told of it, nil if it is off.
func (t *tracking) command() [][]byte {
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
	return bytesOf(words)
}

// cachingCommand is what CLIENT CACHING said.
func (t *tracking) cachingCommand() [][]byte {
	if t.mode.OptIn {
		return bytesOf([]string{"CLIENT", "CACHING", "YES"})
	}
	return bytesOf([]string{"CLIENT", "CACHING", "NO"})
}

// remembers tells whether the keys that the next command reads are to be
// remembered.
func (t *tracking) remembers() bool {
	switch {
	case t.mode == nil || t.mode.Broadcast || t.mode.Redirected:
		return false
	case t.mode.OptIn:
		return t.caching
	}
	return !t.caching
}

// A Command is one on lock keys, that is about to be put to the masters.
type Command struct {
	DB    int
	Args  [][]byte
	Keys  [][]byte // its lock keys
	Route route.Route
}

// PerformTracking is CLIENT TRACKING, whose arity is right. Without an upstream it is answered here,
// so that clients which ask for it when they connect can take locks. It returns false if it
// has refused the command.
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

// track makes the session's side what the client was told, or is about to be.
func (c *Client) track(next *trackingMode) {
	c.tracking.mode, c.tracking.caching = next, false
	own, allowed := c.session.OwnRules()
	if c.hub.subscribe == nil || !allowed {
		return
	}
	if next == nil || next.Redirected {
		if l := c.listening.Load(); l != nil {
			l.Track(nil)
			l.ForgetKeys()
			c.leaveUnheard()
		}
		return
	}
	l := c.listen()
	l.Track(next)
	if !next.Broadcast || own.DenySome() {
		return // nobody is told of keys by their beginnings who may not know of all of them
	}
	prefixes := next.Prefixes
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	c.session.Send()
	c.session.Busy(func() { l.TrackPrefixes(c.session.Context(), prefixes) })
}

// PerformCaching is CLIENT CACHING, whose arity is right. It is for the next command, of which
// nobody knows yet where it goes; so it is answered here.
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

// TellCaching passes CLIENT CACHING on before a command that the upstream
// gets. The connection is open.
func (c *Client) TellCaching() {
	t := &c.tracking
	if !t.caching || t.told || c.session.InPipe() {
		return
	}
	t.told = true
	c.session.Insert(resp.AppendCommand(nil, t.cachingCommand()...), 1)
}

// Tracks tells whether the keys of lock commands are to be told to Begin.
func (c *Client) Tracks() bool {
	return c.tracking.mode != nil && !c.tracking.mode.Redirected && c.Listens()
}

// Begin remembers the keys of lock commands that are about to be put to
// the masters, so that no change from then on is missed. It may be called
// while the client is watched.
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

// Performed is called when a command's reply is pending or will come from the
// upstream. lockReply is the reply if the masters were asked; queues tells that
// commands are queued for EXEC.
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
			t.answered = append(t.answered, t.present...)
		}
		t.present, t.own = nil, nil
	}
	if t.caching && !queues && !isClientCommand(name) {
		t.caching = false
	}
}

func isClientCommand(name string) bool { return len(name) >= 6 && name[:6] == "client" }

// HearUpstream has what the upstream has told of tracked keys come before a reply
// that is given here.
func (c *Client) HearUpstream() {
	t := &c.tracking
	if t.mode == nil || t.mode.Redirected || t.caching || c.session.Version() == wire.RESP2 || c.session.Upstream() == nil || !c.session.Settle() {
		return
	}
	_, _ = c.session.Ask(resp.AppendCommand(nil, []byte("PING")))
}

// Flushed is called when no reply is pending any more: what was kept back
// so as not to come before them may follow.
func (c *Client) Flushed() {
	t := &c.tracking
	if len(t.answered) == 0 {
		return
	}
	if l := c.listening.Load(); l != nil {
		l.Replied(t.answered)
	}
	t.answered = t.answered[:0]
}

func bytesOf(words []string) [][]byte {
	list := make([][]byte, len(words))
	for i, word := range words {
		list[i] = []byte(word)
	}
	return list
}

const (
	// ownValueLeast is how long a value must be not to be taken for a constant
	// that others store too.
	ownValueLeast = 16
	// ownValuesMost bounds what is kept of one command.
	ownValuesMost = 1024
)

// newOwnCommand keeps what may have been stored, nil if there is nothing that
// tells this client from others.
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
	return brought(db, values)
}

// didNothing recognises the replies by which commands say that they changed
// nothing. Where one of them says the opposite, as Redisson's nil does, its
// client is told once too often.
func didNothing(reply []byte) bool {
	switch string(reply) {
	case "$-1\r\n", "*-1\r\n", "_\r\n", ":0\r\n", "#f\r\n":
		return true
	}
	return resp.IsError(reply)
}
