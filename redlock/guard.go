package redlock

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/resp"
)

// guarded is a ballot's question to one master behind its guard.
type guarded[A any] struct {
	ballot *ballot[A]
	call   call // the question itself
	frames []byte
}

// guard is what a master is asked before the question, and what its replies
// say. It keeps the master's watch on keys until the question ends it.
type guard[A any] struct {
	frames  func(master int) []byte // nil: it is not asked at all
	replies int
	// read tells whether the question may follow. If not, value is the master's
	// answer, or err tells that it has none.
	read func(replies [][]byte) (passes bool, value A, err error)
}

var unwatch = resp.AppendCommand(nil, "UNWATCH")

// askGuarded sends the guard, and has the question follow it.
func (b *ballot[A]) askGuarded(s *dbStream, c call, frames []byte) bool {
	first := b.guard.frames(c.master)
	if first == nil {
		return false
	}
	g := &guarded[A]{b, c, bytes.Clone(frames)}
	gate := call{replies: b.guard.replies, asker: g, master: c.master, gates: true}
	return s.send(gate, sending{frames: first, load: b.load, creates: b.creates, lives: b.lives}, b.started)
}

func (g *guarded[A]) owed(*call) *debt { return nil }

func (g *guarded[A]) answered(s *dbStream, c *call, replies [][]byte, j judgement, err error) {
	b := g.ballot
	if err != nil {
		b.answered(s, c, nil, j, errUnsent) // of the question nothing was sent
		return
	}
	passes, value, err := b.guard.read(replies)
	if passes && b.mayFollow() && s.follow(g.call, g.frames) {
		return
	}
	s.follow(call{replies: 1, asker: askerFunc(func([][]byte, judgement, error) {})}, unwatch)
	if passes {
		b.answered(s, c, nil, j, errUnsent)
		return
	}
	b.hear(s, c, replies, j, nil, func([][]byte) (A, error) { return value, err })
}

// mayFollow tells whether a question still makes sense: late, a command could
// be executed that others have been told is not.
func (b *ballot[A]) mayFollow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.verdict == Pending || b.verdict == Won) && !time.Now().After(b.deadline)
}
