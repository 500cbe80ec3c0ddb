package clients

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A Hub knows all connected clients of a process. Any number of goroutines may use it.
type Hub struct {
	mu   sync.Mutex
	byID map[int64]*Connection
}

// NewHub makes an empty Hub.
func NewHub() *Hub { return &Hub{byID: make(map[int64]*Connection)} }

func (b *Hub) remove(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byID, id)
}

func (b *Hub) find(id int64) *Connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byID[id]
}

// all returns the clients in the order in which they came.
func (b *Hub) all() []*Connection {
	b.mu.Lock()
	list := make([]*Connection, 0, len(b.byID))
	for _, c := range b.byID {
		list = append(list, c)
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(x, y *Connection) int { return cmp.Compare(x.session.ID(), y.session.ID()) })
	return list
}

// Entries are the clients as the journal knows them, in the order in which they came.
func (b *Hub) Entries() []events.ClientInfo {
	var list []events.ClientInfo
	for _, c := range b.all() {
		info, s := c.Entry.Info(), c.status()
		info.LibName, info.LibVersion, info.Idle, info.WaitsOn = s.LibName, s.LibVersion, s.idle, s.waits
		list = append(list, info)
	}
	return list
}

// A Connection is one session as the others see it.
type Connection struct {
	Entry   *events.Client               // among the events, which may keep it longer
	Command atomic.Pointer[command.Spec] // the last one, which the session stores; nil: none, or an unknown one

	hub     *Hub
	session *session.Session
	since   time.Time
	onLocks atomic.Int32 // commands that the lock masters are asked

	mu    sync.Mutex
	facts Published // only the session changes them, so it reads them without mu
}

// NewConnection adds a session to the hub. The caller must call Close.
func NewConnection(hub *Hub, session *session.Session, facts Published) *Connection {
	c := &Connection{hub: hub, session: session, since: time.Now()}
	c.Entry = events.NewClient(session.ID(), session.RemoteAddr().String(), c.since)
	c.facts = facts
	c.introduce()
	hub.mu.Lock()
	defer hub.mu.Unlock()
	hub.byID[session.ID()] = c
	return c
}

// Close removes the session from the hub.
func (c *Connection) Close() {
	c.hub.remove(c.session.ID())
	c.Entry.Leave()
}

// Publish shows other sessions what has changed.
func (c *Connection) Publish(now Published) {
	was := c.facts
	if now == was {
		return
	}
	c.mu.Lock()
	c.facts = now
	c.mu.Unlock()
	if now.User != was.User || now.ClientSettings != was.ClientSettings {
		c.introduce()
	}
}

// introduce tells package events what is published.
func (c *Connection) introduce() {
	now := &c.facts
	c.Entry.Introduce(events.Facts{Name: now.Name, User: now.User, DB: now.DB, RESP: now.Version.Number()})
}

// OnLocks says that the lock masters are asked a command, or are no longer. Several may be asked at once.
func (c *Connection) OnLocks(yes bool) {
	if yes {
		c.onLocks.Add(1)
	} else {
		c.onLocks.Add(-1)
	}
}

// status looks at the client. Any goroutine may call it.
func (c *Connection) status() *status {
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
		Published: facts, command: c.Command.Load(), id: c.session.ID(), address: address, local: local,
		age: time.Since(c.since), idle: c.session.Silent(), subscriptions: c.session.Subscriptions(), waits: waits,
	}
}

// Line is the client's line in CLIENT LIST.
func (c *Connection) Line() []byte { return c.status().line(nil) }

// List are the lines of the clients that CLIENT LIST shows.
func (b *Hub) List(filter ListFilter) (lines []byte) {
	shown := map[int64]bool{} // an id that is repeated must not make the reply large
	for _, id := range filter.ids {
		if other := b.find(id); other != nil && !shown[id] {
			shown[id] = true
			lines = other.status().line(lines)
		}
	}
	if filter.ids != nil {
		return lines
	}
	for _, other := range b.all() {
		if s := other.status(); filter.kind == anyType || filter.kind == s.kind() {
			lines = s.line(lines)
		}
	}
	return lines
}

// Kill ends the sessions that the filter is about, and returns the reply. The client's own one ends after
// the reply.
func (c *Connection) Kill(filter KillFilter) (reply []byte) {
	killed := 0
	by, _ := addresses(c.session.RemoteAddr(), c.session.LocalAddr())
	for _, other := range c.hub.all() {
		if !filter.matches(other.status(), other == c) {
			continue
		}
		killed++
		c.hub.remove(other.session.ID()) // it is not listed any more, even if its end takes a moment
		if other == c {
			c.session.End(session.Quit)
		} else {
			other.session.End(session.Killed, slog.String("client", other.session.RemoteAddr().String()), slog.String("by", by))
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

// Upstream is the upstream's connection of the client with this id, or nil.
func (b *Hub) Upstream(id int64) *upstream.Conn {
	if other := b.find(id); other != nil {
		return other.session.Upstream()
	}
	return nil
}
