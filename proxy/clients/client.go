package clients

import (
	"bytes"
	"cmp"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/journal"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// A Session is what a Client needs of its session.
type Session interface {
	ID() int64

	// Any goroutine may call these.
	RemoteAddr() net.Addr
	LocalAddr() net.Addr
	Silent() time.Duration // since bytes last came
	Upstream() *upstream.Conn
	// Subscriptions are the numbers of subscriptions by wire.Family.
	Subscriptions() [3]int
	// Kill ends the session at once. by describes the client that asked for it.
	Kill(by string)

	// KillAfterReply ends the session after the reply to the current command.
	KillAfterReply()
	// UsersAtUpstream tells whether the upstream has the users, and judges their rights.
	UsersAtUpstream() bool
	// HasUser tells whether the proxy itself has a user with this name.
	HasUser(name []byte) bool
	// TryOpen and Ask are session.Session's.
	TryOpen() (refusal wire.Error)
	Ask(command []byte) (reply []byte, ok bool)
}

// A Hub knows all connected clients of a process. Any number of goroutines may use it.
type Hub struct {
	mu   sync.Mutex
	byID map[int64]*Client
}

// NewHub makes an empty Hub.
func NewHub() *Hub { return &Hub{byID: make(map[int64]*Client)} }

func (b *Hub) remove(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byID, id)
}

func (b *Hub) find(id int64) *Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byID[id]
}

// all returns the clients in the order in which they came.
func (b *Hub) all() []*Client {
	b.mu.Lock()
	list := make([]*Client, 0, len(b.byID))
	for _, c := range b.byID {
		list = append(list, c)
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y *Client) int { return cmp.Compare(x.session.ID(), y.session.ID()) })
	return list
}

// Entries are the clients as the journal knows them, in the order in which they came.
func (b *Hub) Entries() []journal.ClientInfo {
	var list []journal.ClientInfo
	for _, c := range b.all() {
		info, s := c.Entry.Info(), c.status()
		info.LibName, info.LibVersion, info.Idle, info.WaitsOn = s.LibName, s.LibVersion, s.idle, s.waits
		list = append(list, info)
	}
	return list
}

// A Client is one session as the others see it.
type Client struct {
	Entry *journal.Client // in the journal, which may keep it longer

	hub     *Hub
	session Session
	since   time.Time
	onLocks atomic.Int32                 // commands that the lock masters are asked
	command atomic.Pointer[command.Spec] // the last one; nil: none, or an unknown one

	// Only the session's goroutine uses these.
	redirect int64 // the client of CLIENT TRACKING REDIRECT, or 0
	asked    int64 // the one that the current command names

	mu    sync.Mutex
	facts Facts // only the session changes them, so it reads them without mu
}

// NewClient adds a session to the hub. The caller must call Close.
func NewClient(hub *Hub, session Session, facts Facts) *Client {
	c := &Client{hub: hub, session: session, since: time.Now()}
	c.Entry = journal.NewClient(session.ID(), session.RemoteAddr().String(), c.since)
	c.facts = facts
	c.introduce()
	hub.mu.Lock()
	defer hub.mu.Unlock()
	hub.byID[session.ID()] = c
	return c
}

// Close removes the session from the hub.
func (c *Client) Close() {
	c.hub.remove(c.session.ID())
	c.Entry.Leave()
}

// Publish shows the facts to other sessions.
func (c *Client) Publish(now Facts) {
	if !now.Tracks {
		c.redirect = 0
	}
	now.redirect = c.redirect
	was := c.facts
	if now == was {
		return
	}
	c.mu.Lock()
	c.facts = now
	c.mu.Unlock()
	if now.User != was.User || now.Settings != was.Settings {
		c.introduce()
	}
}

// introduce tells the journal what is published.
func (c *Client) introduce() {
	now := &c.facts
	c.Entry.Introduce(journal.Facts{Name: now.Name, User: now.User, DB: now.DB, RESP: now.Version.Number()})
}

// Doing says which command the client has sent last; nil: an unknown one.
func (c *Client) Doing(spec *command.Spec) {
	if c.command.Load() != spec {
		c.command.Store(spec)
	}
}

// OnLocks says that the lock masters are asked a command, or are no longer. Several may be asked at once.
func (c *Client) OnLocks(yes bool) {
	if yes {
		c.onLocks.Add(1)
	} else {
		c.onLocks.Add(-1)
	}
}

// status looks at the client. Any goroutine may call it.
func (c *Client) status() *status {
	c.mu.Lock()
	facts := c.facts
	c.mu.Unlock()
	waits := waitsForNobody
	if up := c.session.Upstream(); c.onLocks.Load() > 0 {
		waits = waitsForLocks
	} else if up != nil && !up.Drained() {
		waits = waitsForUpstream
	}
	address, local := addresses(c.session.RemoteAddr(), c.session.LocalAddr())
	return &status{
		Facts: facts, command: c.command.Load(), id: c.session.ID(), address: address, local: local,
		age: time.Since(c.since), idle: c.session.Silent(), subscriptions: c.session.Subscriptions(), waits: waits,
	}
}

// Perform performs a command whose arity is right, and returns its reply. It returns nil if
// the session must end instead. The facts must have been published just now.
func (c *Client) Perform(name string, args [][]byte) (reply []byte) {
	switch name {
	case "client|unblock":
		args, _ = c.atUpstream(args, 2)
		return c.ask(args)
	case "client|trackinginfo":
		return c.showCaching(c.showRedirect(c.ask(args)))
	case "client|id":
		// Another client may soon name this id in CLIENT TRACKING REDIRECT.
		if c.session.TryOpen() == "" && !c.learnID() {
			return nil
		}
		return redcon.AppendInt(nil, c.session.ID())
	case "client|info":
		return c.text(c.status().line(nil))
	case "client|getredir":
		return redcon.AppendInt(nil, c.facts.redirection())
	case "client|list":
		return c.list(args)
	}
	return c.kill(args)
}

// ask returns the upstream's reply to a command.
func (c *Client) ask(args [][]byte) (reply []byte) {
	if refusal := c.session.TryOpen(); refusal != "" {
		return []byte(refusal)
	}
	reply, _ = c.session.Ask(resp.AppendCommand(nil, args...))
	return reply
}

func (c *Client) text(lines []byte) []byte { return wire.AppendText(nil, lines, c.facts.Version) }

func (c *Client) list(args [][]byte) (reply []byte) {
	filter, refusal := parseList(args)
	if refusal = cmp.Or(refusal, c.LacksRight("LIST")); refusal != "" {
		return []byte(refusal)
	}
	var lines []byte
	shown := map[int64]bool{} // an id that is repeated must not make the reply large
	for _, id := range filter.ids {
		if other := c.hub.find(id); other != nil && !shown[id] {
			shown[id] = true
			lines = other.status().line(lines)
		}
	}
	if filter.ids != nil {
		return c.text(lines)
	}
	for _, other := range c.hub.all() {
		if s := other.status(); filter.kind == anyType || filter.kind == s.kind() {
			lines = s.line(lines)
		}
	}
	return c.text(lines)
}

func (c *Client) kill(args [][]byte) (reply []byte) {
	filter, refusal := parseKill(args)
	if refusal = cmp.Or(refusal, c.LacksRight("KILL")); refusal != "" {
		return []byte(refusal)
	}
	if filter.user != nil && !c.knowsUser(filter.user) {
		return []byte(errNoSuchUser(filter.user))
	}
	killed := 0
	by, _ := addresses(c.session.RemoteAddr(), c.session.LocalAddr())
	for _, other := range c.hub.all() {
		if !filter.matches(other.status(), other == c) {
			continue
		}
		killed++
		c.hub.remove(other.session.ID()) // it is not listed any more, even if its end takes a moment
		if other == c {
			c.session.KillAfterReply()
		} else {
			other.session.Kill(by)
		}
	}
	switch {
	case !filter.old:
		return redcon.AppendInt(nil, int64(killed))
	case killed == 0:
		return []byte(errNoSuchClient)
	}
	return []byte(wire.OK)
}

// LacksRight returns the upstream's refusal if it has the users and does not let the client's
// user use this subcommand of CLIENT, LIST or KILL, or "". The command that the upstream gets
// changes nothing.
func (c *Client) LacksRight(subcommand string) wire.Error {
	if !c.session.UsersAtUpstream() {
		return ""
	}
	if refusal := c.session.TryOpen(); refusal != "" {
		return refusal
	}
	reply := c.ask([][]byte{[]byte("CLIENT"), []byte(subcommand), []byte("ID"), []byte(nobody)})
	switch {
	case len(reply) == 0:
		return wire.ErrUpstreamDown
	case !resp.IsError(reply) || bytes.HasPrefix(reply, []byte("-ERR ")): // before 6.2, LIST knows no ID
		return ""
	}
	return wire.Error(reply)
}

// knowsUser asks the upstream for a user that the proxy does not have.
func (c *Client) knowsUser(name []byte) bool {
	if c.session.HasUser(name) {
		return true
	}
	reply := c.ask([][]byte{[]byte("CLIENT"), []byte("KILL"), []byte("USER"), name, []byte("ID"), []byte(nobody)})
	return len(reply) > 0 && reply[0] == ':'
}

// nobody is an id that no client of a Redis ever has.
const nobody = "9223372036854775807"

// learnID asks the upstream for the id of the session's connection to it, if there is one
// whose id is unknown. It returns false if the session must end instead.
func (c *Client) learnID() bool {
	up := c.session.Upstream()
	if up == nil || up.ID() != 0 {
		return true
	}
	reply, ok := c.session.Ask(resp.AppendCommand(nil, "CLIENT", "ID"))
	if ok {
		up.SetID(reply)
	}
	return ok
}

// atUpstream returns the arguments with the client id at this index replaced by the id that
// the upstream has for that client. If it has none, it gets an id that no client has, and
// answers accordingly. An argument that is no number stays as it is.
func (c *Client) atUpstream(args [][]byte, at int) (mapped [][]byte, id int64) {
	id, ok := resp.ParseDecimal(args[at])
	if !ok {
		return args, 0
	}
	mapped = slices.Clone(args)
	mapped[at] = []byte(nobody)
	if other := c.hub.find(id); other != nil {
		if other == c {
			c.learnID()
		}
		if up := other.session.Upstream(); up != nil && up.ID() != 0 {
			mapped[at] = strconv.AppendInt(nil, up.ID(), 10)
		}
	}
	return mapped, id
}

// MapRedirect returns CLIENT TRACKING as the upstream gets it. The caller must call Redirected
// when it is done.
func (c *Client) MapRedirect(cmd wire.Command) wire.Command {
	c.asked = 0
	if at := redirectIn(cmd.Args); at > 0 && c.session.TryOpen() == "" {
		cmd.Args, c.asked = c.atUpstream(cmd.Args, at)
		cmd.Raw = resp.AppendCommand(nil, cmd.Args...)
	}
	return cmd
}

// Redirected says whether the CLIENT TRACKING of MapRedirect was accepted.
func (c *Client) Redirected(yes bool) {
	if yes {
		c.redirect = c.asked
	}
}

// redirectIn returns the index of the id behind REDIRECT in CLIENT TRACKING, or 0.
func redirectIn(args [][]byte) (at int) {
	for i := 3; i+1 < len(args); i++ {
		switch {
		case wire.IsWord(args[i], "REDIRECT"):
			return i + 1
		case wire.IsWord(args[i], "PREFIX"):
			i++
		}
	}
	return 0
}

// showRedirect puts the proxy's id of the client that this one redirects to in place of the
// upstream's id in a reply to CLIENT TRACKINGINFO.
func (c *Client) showRedirect(reply []byte) []byte {
	if c.facts.redirect == 0 {
		return reply
	}
	return wire.ReplaceField(reply, "redirect\r\n:", strconv.FormatInt(c.facts.redirect, 10))
}

// showCaching adds the flag for CLIENT CACHING to a reply to CLIENT TRACKINGINFO, where Redis
// has it. The upstream gets CACHING only in front of the command that it is for.
func (c *Client) showCaching(reply []byte) []byte {
	mode, flag := "$5\r\noptin\r\n", "$11\r\ncaching-yes\r\n"
	if !bytes.Contains(reply, []byte(mode)) {
		mode, flag = "$6\r\noptout\r\n", "$10\r\ncaching-no\r\n"
	}
	head, list, found := bytes.Cut(reply, []byte("$5\r\nflags\r\n"))
	before, after, hasMode := bytes.Cut(list, []byte(mode))
	if !c.facts.Caching || !found || !hasMode || bytes.HasPrefix(after, []byte(flag)) {
		return reply
	}
	before = bytes.Clone(before)
	before[1]++ // the number of flags, which has one digit
	return slices.Concat(head, []byte("$5\r\nflags\r\n"), before, []byte(mode), []byte(flag), after)
}
