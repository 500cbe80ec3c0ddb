package redlock

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

// A gate is a call whose answer decides what comes next on the stream: a
// transaction follows its guard only where that has said yes. Until then nothing
// else is sent, for a connection that watches keys stops doing so with the next
// EXEC, whoever's it is.

// postponed is a call that waits behind a gate, with its frames.
type postponed struct {
	call   call
	frames []byte
}

// tell hands an asker its answer. What waited behind a gate comes after what
// its asker made of the answer.
func (s *dbStream) tell(c *call, replies [][]byte, st roster.Standing) {
	if c.gates {
		defer s.openGate()
	}
	c.asker.answered(s, c, replies, st, nil)
}

// follow queues what is to come right behind a gate. Only the gate's asker may
// call it, while it is answered. False: the connection has ended.
func (s *dbStream) follow(c call, frames []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != up {
		return false
	}
	c.size += len(frames)
	s.asking += c.size
	s.queue(c, frames, time.Now())
	return true
}

// openGate queues what was postponed, up to the next gate.
func (s *dbStream) openGate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gated = false
	now := time.Now()
	waiting := s.postponed
	for len(waiting) > 0 && !s.gated {
		s.queue(waiting[0].call, waiting[0].frames, now)
		waiting[0] = postponed{}
		waiting = waiting[1:]
	}
	s.postponed = waiting
}

// forgetGate, with s.mu held, has what was postponed end with the connection:
// it is unwritten as what is still in out.
func (s *dbStream) forgetGate() {
	for _, p := range s.postponed {
		s.calls = append(s.calls, p.call)
		s.unwritten++
	}
	s.gated, s.postponed = false, nil
}

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

func (g *guarded[A]) answered(s *dbStream, c *call, replies [][]byte, st roster.Standing, err error) {
	b := g.ballot
	if err != nil {
		b.answered(s, c, nil, st, errUnsent) // of the question nothing was sent
		return
	}
	passes, value, err := b.guard.read(replies)
	if passes && b.mayFollow() && s.follow(g.call, g.frames) {
		return
	}
	s.follow(call{replies: 1, asker: askerFunc(func([][]byte, roster.Standing, error) {})}, unwatch)
	if passes {
		b.answered(s, c, nil, st, errUnsent)
		return
	}
	b.hear(s, c, replies, st, nil, func([][]byte) (A, error) { return value, err })
}

// mayFollow tells whether a question still makes sense: late, a command could
// be executed that others have been told is not.
func (b *ballot[A]) mayFollow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.verdict == Pending || b.verdict == Won) && !time.Now().After(b.deadline)
}
