package ballot

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// guarded is a ballot's question to one master, to be sent after the guard.
type guarded[A any] struct {
	ballot *Ballot[A]
	call   stream.Call // the question itself
	frames []byte
}

// Guard is a check that a master must pass before it gets the question. It contains
// WATCH, and the master watches the keys until the question, or an UNWATCH, ends that.
type Guard[A any] struct {
	Frames  func(master int) []byte // if it returns nil, the master is not asked at all
	Replies int
	// Read tells whether the question may follow. If not, value is the master's answer,
	// or err says why it has none.
	Read func(replies [][]byte) (passes bool, value A, err error)
	// Stopped tells, of a ballot that was won, whether the winning answers are of masters that did
	// not pass. Then the question follows on no other master.
	Stopped func(answers []quorum.Answer[A]) bool
}

var unwatch = resp.AppendCommand(nil, "UNWATCH")

// askGuarded sends the guard. The question follows when the guard's replies allow it.
func (b *Ballot[A]) askGuarded(s *stream.Stream, c stream.Call, frames []byte) bool {
	first := b.Guard.Frames(c.Master)
	if first == nil {
		return false
	}
	g := &guarded[A]{b, c, bytes.Clone(frames)}
	gate := stream.Call{Replies: b.Guard.Replies, Asker: g, Master: c.Master, Gates: true}
	return s.Send(gate, stream.Sending{Frames: first, Load: b.Load, Creates: b.Creates, Lives: b.TTL}, b.Started)
}

func (g *guarded[A]) Owed(*stream.Call) *stream.Debt { return nil }

func (g *guarded[A]) Answered(s *stream.Stream, c *stream.Call, replies [][]byte, j stream.Judgement, err error) {
	b := g.ballot
	told := false
	defer func() {
		if !told { // nothing of the question was sent, also if Read panics
			b.Answered(s, c, nil, j, stream.ErrUnsent)
		}
	}()
	if err != nil {
		return
	}
	passes, value, err := b.Guard.Read(replies)
	if told = passes && b.mayFollow() && s.Follow(g.call, g.frames); told {
		return
	}
	s.Follow(stream.Call{Replies: 1, Asker: stream.AskerFunc(func([][]byte, stream.Judgement, error) {})}, unwatch)
	if told = !passes; told {
		b.hear(s, c, replies, j, nil, func([][]byte) (A, error) { return value, err })
	}
}

// mayFollow tells whether the question may still be sent. Too late, or if a quorum did not pass, a
// master could execute a command although the client has heard that it was not executed.
func (b *Ballot[A]) mayFollow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	open := b.Verdict == Pending || b.Verdict == Won && !b.Guard.Stopped(b.Answers)
	return open && !time.Now().After(b.deadline)
}
