package events

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// longestKept bounds what is kept of a key or of a client's name, in bytes.
const longestKept = 256

// A Client is one client, for the journal, which keeps it for a while after it has left. All
// methods but Leave work on nil, an unknown client.
type Client struct {
	id      int64
	address string
	arrived time.Time
	granted atomic.Int64
	gone    atomic.Bool
	listed  atomic.Bool // in Journal.clients

	mu       sync.Mutex // guards all below
	identity Identity
	running  int    // lock commands
	command  string // the one that began last; "" if none runs
	began    time.Time
	key      []byte // the first key of that command; its buffer is used again
	tries    []try  // the locks that it tries to take, the one of the last try at the end
}

// A try is since when a client has tried in vain to take a lock, and when it did so last.
type try struct {
	key         uint64 // a hash
	since, last int64
}

const (
	// mostTries bounds the locks that a client is known to wait for.
	mostTries = 8
	// retryPause is longer than the pause between two tries of a client that still waits.
	retryPause = int64(30 * time.Second)
)

// An Identity is what a client may change of itself.
type Identity struct {
	Name, User string
	DB         int
	RESP       int // 2 or 3
}

// ClientInfo is a client at one moment.
type ClientInfo struct {
	Identity
	ID      int64
	Address string
	Arrived time.Time
	Gone    bool
	Granted int64 // the locks that it took here
	Command string
	Key     string // of Command
	Began   time.Time

	// The journal does not know these. Package handler does, while the client is connected.
	LibName, LibVersion string
	Idle                time.Duration // since bytes last came
	WaitsOn             string        // who must answer next: locks, upstream or nobody
}

// NewClient makes a client that has just connected.
func NewClient(id int64, address string, now time.Time) *Client {
	return &Client{id: id, address: address, arrived: now}
}

// Leave says that the client has gone. The journal may keep it, so it frees most of its
// memory.
func (c *Client) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.command, c.key, c.tries = "", nil, nil
	c.gone.Store(true)
}

// Introduce replaces the identity of a client.
func (c *Client) Introduce(f Identity) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Name = f.Name[:min(len(f.Name), longestKept)]
	if f.Name == c.identity.Name {
		f.Name = c.identity.Name
	} else {
		f.Name = strings.Clone(f.Name) // a piece would keep the whole
	}
	c.identity = f
}

// Begin says that a lock command of the client begins. Leave must come later.
func (c *Client) Begin(command string, key []byte, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	c.command, c.began = command, now
	c.key = append(c.key[:0], key[:min(len(key), longestKept)]...)
}

// End says that a command has ended.
func (c *Client) End() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running <= 0 {
		c.command = ""
	}
}

// Info describes the client now.
func (c *Client) Info() (info ClientInfo) {
	if c == nil {
		return info
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info = ClientInfo{
		Identity: c.identity, ID: c.id, Address: c.address, Arrived: c.arrived,
		Gone: c.gone.Load(), Granted: c.granted.Load(),
	}
	if c.command != "" {
		info.Command, info.Began, info.Key = c.command, c.began, string(c.key)
	}
	return info
}

// tried says that the client has taken a lock, or was refused it, by a command that began at began. It
// returns since when the client has tried. A client that has not tried for retryPause had given up.
func (c *Client) tried(key uint64, granted bool, began, now int64) (since int64) {
	if c == nil {
		return began
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	since = began
	if at := slices.IndexFunc(c.tries, func(t try) bool { return t.key == key }); at >= 0 {
		if began-c.tries[at].last < retryPause {
			since = c.tries[at].since
		}
		c.tries = slices.Delete(c.tries, at, at+1)
	}
	if !granted {
		if len(c.tries) == mostTries {
			c.tries = slices.Delete(c.tries, 0, 1)
		}
		c.tries = append(c.tries, try{key, since, now})
	}
	return since
}
