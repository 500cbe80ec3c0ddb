package proxy

import (
	"container/list"
	"crypto/sha1"
	"encoding/hex"
	"sync"
)

// scriptSHA is a script's name: the SHA1 of its exact bytes.
type scriptSHA [sha1.Size]byte

// scriptOverhead is counted for each text beside its bytes, so that a flood
// of tiny scripts is bounded too.
const scriptOverhead = 256

// scriptCache remembers the script texts that any client has sent, so that an
// EVALSHA can be run on masters that have not seen the text yet. It is shared
// by all sessions and safe for concurrent use. When it is full the text that
// was asked for least recently goes; nothing is pinned. A forgotten text is
// still tried on the masters by its SHA1 alone.
type scriptCache struct {
	forgotten func() // called for each text that goes; may be nil

	mu       sync.Mutex
	maxBytes int
	bytes    int
	recent   list.List // of *cachedScript, the most recently used in front
	bySHA    map[scriptSHA]*list.Element
}

type cachedScript struct {
	sha  scriptSHA
	text []byte
}

func newScriptCache(maxBytes int) *scriptCache {
	return &scriptCache{maxBytes: maxBytes, bySHA: make(map[scriptSHA]*list.Element)}
}

// bound changes how many bytes may be kept; what is too much goes at once.
func (c *scriptCache) bound(maxBytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxBytes = maxBytes
	for c.bytes > maxBytes {
		c.evict()
	}
}

// register keeps a text, of which it takes a copy, and returns its SHA1. A text
// larger than the whole cache is not kept. It does not allocate for a text that is
// known.
func (c *scriptCache) register(text []byte) scriptSHA {
	sha := scriptSHA(sha1.Sum(text))
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.bySHA[sha]; ok {
		c.recent.MoveToFront(known)
		return sha
	}
	size := len(text) + scriptOverhead
	if size > c.maxBytes {
		return sha
	}
	for c.bytes+size > c.maxBytes {
		c.evict()
	}
	script := &cachedScript{sha: sha, text: append([]byte{}, text...)}
	c.bySHA[sha] = c.recent.PushFront(script)
	c.bytes += size
	return sha
}

// evict forgets the least recently used text; the caller holds the mutex and
// knows that there is one.
func (c *scriptCache) evict() {
	oldest := c.recent.Back()
	script := c.recent.Remove(oldest).(*cachedScript)
	delete(c.bySHA, script.sha)
	c.bytes -= len(script.text) + scriptOverhead
	if c.forgotten != nil {
		c.forgotten()
	}
}

// get finds a text by its SHA1 in hex of any case. The text is shared: nobody
// may change it.
func (c *scriptCache) get(sha []byte) (text []byte, ok bool) {
	var sum scriptSHA
	if len(sha) != hex.EncodedLen(len(sum)) {
		return nil, false
	}
	if _, err := hex.Decode(sum[:], sha); err != nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.bySHA[sum]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(known)
	return known.Value.(*cachedScript).text, true
}

// flush forgets every text, as SCRIPT FLUSH does.
func (c *scriptCache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent.Init()
	clear(c.bySHA)
	c.bytes = 0
}
