package lock

import (
	"container/list"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"sync"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/script"
)

// scriptSHA is a script's name: the SHA1 of its exact bytes.
type scriptSHA [sha1.Size]byte

// scriptOverhead is added to the size of each text, in bytes, so that a flood of tiny
// scripts is bounded too.
const scriptOverhead = 256

// Scripts has the script texts that any client has sent, so that an EVALSHA can run on masters
// that have not seen the text yet. A client loads a script before it is known whether it will run on
// lock keys. All sessions share it, and it is
// safe for concurrent use. When it is full, it forgets the least recently used text that
// has not run on lock keys, and those that have only for their like: an application with
// many scripts on ordinary keys does not drive out those of locks.
// No text is exempt. Clients send a forgotten text again after NOSCRIPT.
type Scripts struct {
	forgotten func()

	mu       sync.Mutex
	maxBytes int
	longest  int // of a text that is kept
	bytes    int
	locking  list.List // of *cachedScript that have run on lock keys, the most recently used in front
	ordinary list.List // of all others
	bySHA    map[scriptSHA]*list.Element
}

type cachedScript struct {
	sha      scriptSHA
	in       *list.List
	text     []byte
	acquires bool
	shape    unruled.Shape

	read     sync.Once // guards releases, which is found out when it is asked for
	releases bool      // it certainly is a compare-and-delete, and does nothing else
}

// NewScripts makes an empty Scripts of at most maxBytes. It calls forgotten for each text
// that it forgets to make room, with its mutex held. forgotten may be nil.
func NewScripts(maxBytes int, forgotten func()) *Scripts {
	return &Scripts{forgotten: forgotten, maxBytes: maxBytes, longest: maxBytes, bySHA: make(map[scriptSHA]*list.Element)}
}

// SetLimits changes the limits of all texts together and of a text, in bytes. It forgets what is
// above the first at once. A longer text is not kept: masters get the texts, and all lock commands
// wait for a large one.
func (c *Scripts) SetLimits(maxBytes, longest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxBytes, c.longest = maxBytes, longest
	c.makeRoom(0, &c.ordinary, &c.locking)
}

// Register keeps a copy of a text that runs on lock keys, unless the text is larger than the
// limits. It does not allocate if it knows the text.
func (c *Scripts) Register(text []byte) { c.keep(text, true) }

// keep is Register for any text. It returns the text's Shape.
func (c *Scripts) keep(text []byte, locks bool) unruled.Shape {
	sha := scriptSHA(sha1.Sum(text))
	if known := c.use(sha, locks); known != nil {
		return known.shape
	}
	script := &cachedScript{sha: sha, text: append([]byte{}, text...), shape: unruled.ShapeOf(binary.BigEndian.Uint64(sha[:])|1, text)}
	c.mu.Lock()
	defer c.mu.Unlock()
	size, before := len(text)+scriptOverhead, []*list.List{&c.ordinary}
	if script.in = &c.ordinary; locks {
		script.in, before = &c.locking, append(before, &c.locking)
	}
	if c.bySHA[sha] == nil && size <= c.maxBytes && len(text) <= c.longest && c.makeRoom(size, before...) {
		c.bySHA[sha] = script.in.PushFront(script)
		c.bytes += size
	}
	return script.shape
}

// use makes a text the most recently used one. It returns nil if it does not know the text. The
// caller must not read acquires.
func (c *Scripts) use(sha scriptSHA, locks bool) *cachedScript {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.bySHA[sha]
	if !ok {
		return nil
	}
	script := known.Value.(*cachedScript)
	if locks && script.in == &c.ordinary {
		script.in.Remove(known)
		script.in = &c.locking
		c.bySHA[sha] = script.in.PushFront(script)
		return script
	}
	script.in.MoveToFront(known)
	return script
}

// Releases tells whether the text with this SHA1 in hex has run on lock keys, and certainly is a
// compare-and-delete of one key.
func (c *Scripts) Releases(sha []byte) bool {
	return c.get(sha, true).isRelease()
}

// ReleasesText is Releases for a text.
func (c *Scripts) ReleasesText(text []byte) bool {
	return c.use(sha1.Sum(text), true).isRelease()
}

func (s *cachedScript) isRelease() bool {
	if s == nil {
		return false
	}
	s.read.Do(func() { _, s.releases = script.Recognise(s.text) })
	return s.releases
}

// Acquires tells whether Acquired was called for this text.
func (c *Scripts) Acquires(text []byte) bool {
	sha := scriptSHA(sha1.Sum(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.bySHA[sha]
	return ok && known.Value.(*cachedScript).acquires
}

// Acquired remembers, with the text, that a run of it has taken a lock. A text that is not
// remembered itself is ignored.
func (c *Scripts) Acquired(text []byte) {
	sha := scriptSHA(sha1.Sum(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.bySHA[sha]; ok {
		known.Value.(*cachedScript).acquires = true
	}
}

// makeRoom forgets the least recently used texts of the first list, then those of the next,
// until there is room for size bytes. The caller holds the mutex.
func (c *Scripts) makeRoom(size int, from ...*list.List) (room bool) {
	for _, in := range from {
		for c.bytes+size > c.maxBytes && in.Len() > 0 {
			script := in.Remove(in.Back()).(*cachedScript)
			delete(c.bySHA, script.sha)
			c.bytes -= len(script.text) + scriptOverhead
			if c.forgotten != nil {
				c.forgotten()
			}
		}
	}
	return c.bytes+size <= c.maxBytes
}

// Get finds a text that runs on lock keys by its SHA1 in hex, in upper or lower case. The text
// is shared, so the caller must not change it.
func (c *Scripts) Get(sha []byte) (text []byte, ok bool) {
	script := c.get(sha, true)
	if script == nil {
		return nil, false
	}
	return script.text, true
}

// get is use for a SHA1 in hex.
func (c *Scripts) get(sha []byte, locks bool) *cachedScript {
	var sum scriptSHA
	if len(sha) != hex.EncodedLen(len(sum)) {
		return nil
	}
	if _, err := hex.Decode(sum[:], sha); err != nil {
		return nil
	}
	return c.use(sum, locks)
}

// Flush forgets every text, as SCRIPT FLUSH does.
func (c *Scripts) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.locking.Init()
	c.ordinary.Init()
	clear(c.bySHA)
	c.bytes = 0
}

// Exist returns the reply to SCRIPT EXISTS: 1 for each script that both planes can run.
// fromUpstream is the upstream's reply, nil if there is no upstream.
func (c *Scripts) Exist(fromUpstream []byte, names [][]byte) []byte {
	upstream, _ := resp.Elements(fromUpstream)
	reply := redcon.AppendArray(nil, len(names))
	for i, sha := range names {
		exists := ":0\r\n"
		if c.get(sha, false) != nil && (i >= len(upstream) || string(upstream[i]) == ":1\r\n") {
			exists = ":1\r\n"
		}
		reply = append(reply, exists...)
	}
	return reply
}

// Learn stores the text of the script in a command, if there is one, so that every client can
// run it on lock keys with EVALSHA. It returns the Shape of the script that the command runs
// or loads.
func (c *Scripts) Learn(name string, args [][]byte) unruled.Shape {
	switch {
	case (name == "eval" || name == "eval_ro") && len(args) > 1:
		return c.keep(args[1], false)
	case name == "script|load" && len(args) == 3:
		return c.keep(args[2], false)
	case name == "evalsha" && len(args) > 1:
		if script := c.get(args[1], false); script != nil {
			return script.shape
		}
	}
	return unruled.Shape{}
}
