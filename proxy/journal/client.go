package journal

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// longestKept bounds what is kept of a key or of a client's name, in bytes.
const longestKept = 256

// A Client is one client. It stays known after it has left while a key that it took is. All
// methods work on nil, a client that nobody introduced.
type Client struct {
	id      int64
	address string
	arrived time.Time
	granted atomic.Int64
	gone    atomic.Bool

	mu      sync.Mutex // guards all below
	facts   Facts
	command string // the lock command that runs; "" if none
	began   time.Time
	key     *[longestKept]byte // the first key of that command; nil before the first and after Leave
	keySize int
}

// Facts are what a client may change.
type Facts struct {
	Name, User string
	DB         int
	RESP       int // 2 or 3
}

// ClientInfo is a client at one moment.
type ClientInfo struct {
	Facts
	ID      int64
	Address string
	Arrived time.Time
	Gone    bool
	Granted int64 // the locks that it took here
	Command string
	Key     string // of Command
	Began   time.Time
}

// Enter makes a client known until Leave. A nil Journal knows no clients.
func (j *Journal) Enter(id int64, address string, now time.Time) *Client {
	if j == nil {
		return nil
	}
	c := &Client{id: id, address: address, arrived: now}
	j.clientsMu.Lock()
	defer j.clientsMu.Unlock()
	j.clients[c] = struct{}{}
	return c
}

// Leave says that the client has gone.
func (j *Journal) Leave(c *Client) {
	if j == nil {
		return
	}
	c.gone.Store(true)
	c.forgetCommand()
	j.clientsMu.Lock()
	defer j.clientsMu.Unlock()
	delete(j.clients, c)
}

// forgetCommand frees what a client that has left needs no more. Keys may keep the client.
func (c *Client) forgetCommand() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.command, c.key, c.keySize = "", nil, 0
}

// Clients are all that have not left, the oldest first.
func (j *Journal) Clients() []ClientInfo {
	j.clientsMu.Lock()
	list := make([]*Client, 0, len(j.clients))
	for c := range j.clients {
		list = append(list, c)
	}
	j.clientsMu.Unlock()
	slices.SortFunc(list, func(a, b *Client) int { return cmp.Compare(a.id, b.id) })
	infos := make([]ClientInfo, len(list))
	for i, c := range list {
		infos[i] = c.info()
	}
	return infos
}

// Introduce replaces the facts of a client.
func (c *Client) Introduce(f Facts) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Name = f.Name[:min(len(f.Name), longestKept)]
	if f.Name == c.facts.Name {
		f.Name = c.facts.Name
	} else {
		f.Name = strings.Clone(f.Name) // a piece would keep the whole
	}
	c.facts = f
}

// Granted is the number of locks that the client has taken here.
func (c *Client) Granted() int64 {
	if c == nil {
		return 0
	}
	return c.granted.Load()
}

// Begin says that a lock command of the client begins. Leave must come later.
func (c *Client) Begin(command string, key []byte, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key == nil {
		c.key = new([longestKept]byte)
	}
	c.command, c.began, c.keySize = command, now, copy(c.key[:], key)
}

// End says that the command that began last has ended.
func (c *Client) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.command = ""
}

func (c *Client) info() (info ClientInfo) {
	if c == nil {
		return info
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info = ClientInfo{
		Facts: c.facts, ID: c.id, Address: c.address, Arrived: c.arrived,
		Gone: c.gone.Load(), Granted: c.granted.Load(),
	}
	if c.command != "" {
		info.Command, info.Began, info.Key = c.command, c.began, string(c.key[:c.keySize])
	}
	return info
}
