package stream

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"time"

	"redlock-proxy/redlock/resp"
)

// A Call is one question on a stream. It has a known number of top-level replies.
type Call struct {
	Replies int
	check   bool // it is the check of its batch, and has no Asker
	role    bool // it is a check that asks ROLE instead of INFO
	Asker   Asker
	Master  int      // the master's number, for the asker
	Writes  []string // keys under which the call may create a lock
	Gates   bool     // it is a gate (gate.go)

	creates bool // it may create a lock

	size int // bytes of its frames
	skip int // replies before its own, to SCRIPT LOAD and to Options.Raise
	sent time.Time
	// slept, of a check, is the total time that this machine had been suspended by sent.
	slept time.Duration
}

// A Sending is the bytes of a call and what the stream must do before it. The stream
// copies what it needs.
type Sending struct {
	Frames  []byte
	Load    []Loadable    // scripts that the master must know before the call
	Creates bool          // the call may create a lock
	Lives   time.Duration // the TTL of that lock; the marker must record one at least as long
}

// An Asker receives the result of its call exactly once. The stream's link calls
// Answered, or the goroutine that ends a connection does. Answered gets the replies with
// the judgement of the batch, or an error. The replies are valid during the call only.
// Answered must not block.
type Asker interface {
	Answered(s *Stream, c *Call, replies [][]byte, j Judgement, err error)
	// Owed returns the debt to keep if the connection breaks before the answer. It
	// returns nil if there is none.
	Owed(c *Call) *Debt
}

// AskerFunc is an Asker without debts.
type AskerFunc func(replies [][]byte, j Judgement, err error)

func (f AskerFunc) Answered(_ *Stream, _ *Call, replies [][]byte, j Judgement, err error) {
	f(replies, j, err)
}

func (f AskerFunc) Owed(*Call) *Debt { return nil }

// Loadable is the text of a script that the master must know before a call.
type Loadable struct {
	SHA  string
	text []byte
}

// NewLoadable returns the Loadable of a script's text.
func NewLoadable(text []byte) Loadable {
	sum := sha1.Sum(text)
	return Loadable{SHA: hex.EncodeToString(sum[:]), text: text}
}

// The errors of calls. After errLost the master may or may not have executed the call. After
// ErrUnsent it has certainly not. After ErrTooLong it has, and the answer is dropped as it comes.
var (
	ErrTooLong = errors.New("the answer is too long")
	errLost    = errors.New("connection lost before the answer")
	ErrUnsent  = errors.New("connection lost before the question was sent")
)

// maxLoaded bounds the number of scripts that the stream knows to be loaded. Beyond it
// the stream loads scripts again. Only a flood of new scripts pays for that.
const maxLoaded = 1 << 12

// maxCalls bounds the number of unanswered calls on one stream.
const maxCalls = 1 << 16

// maxAsking bounds the bytes of all unanswered calls. One call alone may exceed it,
// because clients may send large commands.
const maxAsking = 32 << 20

// Send queues a call. It returns false if the master cannot be asked now, because it is
// unreachable or too many calls wait. For a call that may create a lock it also returns
// false in three more cases: the master does not answer, it has debts or no room for
// more, or it refuses what locks need.
func (s *Stream) Send(c Call, m Sending, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Creates && !s.mayCreate(now) || !s.accepts() {
		return false
	}
	c.creates = m.Creates
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
	return s.state < down && len(s.calls)-s.head+len(s.postponed) < maxCalls && s.asking < maxAsking
}

// push queues a call, with s.mu held. If a gate is unanswered, the call waits behind it.
func (s *Stream) push(c Call, frames []byte, now time.Time) {
	c.size += len(frames)
	s.asking += c.size
	if s.gated {
		s.postponed = append(s.postponed, postponed{c, bytes.Clone(frames)})
		return
	}
	s.queue(c, frames, now)
}

// queue hands a call to the link, with s.mu held.
func (s *Stream) queue(c Call, frames []byte, now time.Time) {
	c.sent = now
	s.out = append(s.out, frames...)
	s.calls = append(s.calls, c)
	s.unwritten++
	s.gated = s.gated || c.Gates
	s.wake()
}
