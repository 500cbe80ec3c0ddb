package stream

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"time"

	"redlock-proxy/redlock/resp"
)

// A Call is one question on a stream that waits for a known number of top-level
// replies.
type Call struct {
	Replies int
	check   bool // it is the check of its batch, and nobody else asked it
	role    bool // it is a check that asks ROLE, and not INFO
	Asker   Asker
	Master  int      // the asker's own number of the master
	Writes  []string // keys under which it may create a lock
	Gates   bool     // it is a gate

	size int // bytes sent with it
	skip int // replies before the question's own: SCRIPT LOAD, the marker raised
	sent time.Time
	// slept is, of a check, for how long this machine had been suspended by then.
	slept time.Duration
}

// A Sending is what a call puts into the stream. It is not kept.
type Sending struct {
	Frames  []byte
	Load    []Loadable    // scripts the master must know before
	Creates bool          // it may create a lock
	Lives   time.Duration // the TTL of that; the marker must know of one as long
}

// An Asker hears of its call exactly once, from the stream's reader (or the
// goroutine that ends a connection): the replies, which are good during the call
// only, and what its batch's check said, or an error. It must not block.
type Asker interface {
	Answered(s *Stream, c *Call, replies [][]byte, j Judgement, err error)
	// owed is what the master must still be told if the connection breaks before
	// the answer; nil if nothing.
	Owed(c *Call) *Debt
}

// AskerFunc is an asker that only wants to know the answer.
type AskerFunc func(replies [][]byte, j Judgement, err error)

func (f AskerFunc) Answered(_ *Stream, _ *Call, replies [][]byte, j Judgement, err error) {
	f(replies, j, err)
}

func (f AskerFunc) Owed(*Call) *Debt { return nil }

// Loadable is a script text that must be known to the master before the call.
type Loadable struct {
	SHA  string
	text []byte
}

func NewLoadable(text []byte) Loadable {
	sum := sha1.Sum(text)
	return Loadable{SHA: hex.EncodeToString(sum[:]), text: text}
}

// A call that ends with errLost may or may not have been executed; one that
// ends with errUnsent was certainly not.
var (
	errLost   = errors.New("connection lost before the answer")
	ErrUnsent = errors.New("connection lost before the question was sent")
)

// maxLoaded bounds how many scripts are known to be loaded. Beyond it they are
// loaded again, which a flood of ever new scripts pays for.
const maxLoaded = 1 << 12

// maxCalls bounds what may wait unanswered on one stream.
const maxCalls = 1 << 16

// MaxAsking bounds the bytes of all that waits unanswered. One call may exceed
// it, for it may be as large as clients like.
const MaxAsking = 32 << 20

// Send queues a call. False means the master cannot be asked now: it is away,
// or, for a call that may create a lock, it is suspended, or has no room for the
// undo this may need.
func (s *Stream) Send(c Call, m Sending, now time.Time) bool {
	defer s.tellQueued()
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Creates && !s.mayCreate(now) || !s.accepts() {
		return false
	}
	var first []byte
	if m.Lives > s.longest && !s.embedded {
		first = s.raise(first, m.Lives)
		s.longest = m.Lives
		c.skip++
	}
	for _, script := range m.Load {
		if !s.loaded[script.SHA] {
			if len(s.loaded) >= maxLoaded {
				clear(s.loaded)
			}
			first = resp.AppendCommand(first, []byte("SCRIPT"), []byte("LOAD"), script.text)
			s.loaded[script.SHA] = true
			c.skip++
		}
	}
	if first != nil {
		m.Frames = append(first, m.Frames...)
	}
	s.push(c, m.Frames, now)
	return true
}

// accepts tells, with s.mu held, whether a call can be queued.
func (s *Stream) accepts() bool {
	return s.state < down && len(s.calls)-s.head+len(s.postponed) < maxCalls && s.asking < MaxAsking
}

// push queues a call, with s.mu held, behind a gate that is unanswered.
func (s *Stream) push(c Call, frames []byte, now time.Time) {
	c.size += len(frames)
	s.asking += c.size
	if s.gated {
		s.postponed = append(s.postponed, postponed{c, bytes.Clone(frames)})
		return
	}
	s.queue(c, frames, now)
}

// queue hands a call to the writer, with s.mu held.
func (s *Stream) queue(c Call, frames []byte, now time.Time) {
	c.sent = now
	s.out = append(s.out, frames...)
	s.calls = append(s.calls, c)
	s.unwritten++
	s.gated = s.gated || c.Gates
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
