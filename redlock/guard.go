package redlock

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// guarded is a ballot's question to one master behind its guard.
type guarded[A any] struct {
	ballot *ballot[A]
	call   stream.Call // the question itself
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
func (b *ballot[A]) askGuarded(s *stream.Stream, c stream.Call, frames []byte) bool {
	first := b.guard.frames(c.Master)
	if first == nil {
		return false
	}
	g := &guarded[A]{b, c, bytes.Clone(frames)}
	gate := stream.Call{Replies: b.guard.replies, Asker: g, Master: c.Master, Gates: true}
	return s.Send(gate, stream.Sending{Frames: first, Load: b.load, Creates: b.creates, Lives: b.lives}, b.started)
}

func (g *guarded[A]) Owed(*stream.Call) *stream.Debt { return nil }

func (g *guarded[A]) Answered(s *stream.Stream, c *stream.Call, replies [][]byte, j stream.Judgement, err error) {
	b := g.ballot
	if err != nil {
		b.Answered(s, c, nil, j, stream.ErrUnsent) // of the question nothing was sent
		return
	}
	passes, value, err := b.guard.read(replies)
	if passes && b.mayFollow() && s.Follow(g.call, g.frames) {
		return
	}
	s.Follow(stream.Call{Replies: 1, Asker: stream.AskerFunc(func([][]byte, stream.Judgement, error) {})}, unwatch)
	if passes {
		b.Answered(s, c, nil, j, stream.ErrUnsent)
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
