package session

import (
	"bytes"
	"context"
	"sync/atomic"

	"redlock-proxy/redlock/loop"
)

const (
	// mostAsked bounds the commands of a session that masters are asked at the same time.
	mostAsked = 64
	// longestAsked bounds the bytes of each: a longer one is asked alone.
	longestAsked = 4 << 10
)

// An Asked is a command that the masters are asked beside others of its session. Many clients send
// all commands of an application over one connection. If each waited for the one before, all would
// wait for a round trip to the masters each.
type Asked struct {
	Args  [][]byte // a copy of the command's
	Reply []byte   // what Overlap's function answers

	key    []byte
	silent bool
	bytes  []byte // of Args
	done   atomic.Bool
}

// MayOverlap tells whether a command about this key may be asked beside those that are already, so
// that Overlap may be called. More commands must have come, or it would gain nothing. No earlier
// command may be about the key, or wait for the upstream. It waits while very many are asked.
func (s *Session) MayOverlap(key []byte, args [][]byte) bool {
	if !s.task.OnLoop() || len(s.asked) == 0 && !s.HasInput() || s.up.Gathers() || !s.up.Drained() {
		return false
	}
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	if size > longestAsked {
		return false
	}
	for _, a := range s.asked {
		if bytes.Equal(a.key, key) {
			return false
		}
	}
	for len(s.asked) >= mostAsked {
		s.settleFirst()
	}
	return s.task.OnLoop() && !s.Ending() && s.Env.Budget.Reserve(size)
}

// Overlap has ask answer a command in a task of its own, which may be on the loop, and returns. The
// reply comes after those of earlier commands. The functions of all commands begin in their order.
// They give way to sessions, so that a client with many commands does not delay one with few.
// key is one of args.
func (s *Session) Overlap(key []byte, args [][]byte, ask func(context.Context, *Asked)) {
	a := s.newAsked(key, args)
	s.asked = append(s.asked, a)
	started := s.Env.Loop.GoLater(func(t *loop.Task) (rests bool) {
		defer func() {
			if reason := recover(); reason != nil {
				s.Panicked(reason)
			}
			a.done.Store(true)
			s.task.Unpark()
		}()
		ask(loop.NewContext(s.ctx, t), a)
		return false
	})
	if started == nil { // the process ends
		a.done.Store(true)
	}
}

func (s *Session) newAsked(key []byte, args [][]byte) *Asked {
	a := new(Asked)
	if last := len(s.unasked) - 1; last >= 0 {
		a, s.unasked = s.unasked[last], s.unasked[:last]
	}
	a.silent, a.bytes, a.Args, a.Reply = s.silent, a.bytes[:0], a.Args[:0], a.Reply[:0]
	a.done.Store(false)
	for _, arg := range args {
		a.bytes = append(a.bytes, arg...)
	}
	at := 0
	for _, arg := range args {
		a.Args = append(a.Args, a.bytes[at:at+len(arg):at+len(arg)])
		if len(arg) > 0 && &arg[0] == &key[0] {
			a.key = a.Args[len(a.Args)-1]
		}
		at += len(arg)
	}
	return a
}

// settleAsked waits until all commands that the masters are asked have been answered.
func (s *Session) settleAsked() {
	for len(s.asked) > 0 {
		s.settleFirst()
	}
	s.unasked = nil
}

// settleFirst waits for the answer to the oldest command.
func (s *Session) settleFirst() {
	a := s.asked[0]
	if !a.done.Load() {
		s.whileBusy(func() {
			for !a.done.Load() {
				s.task.Park()
			}
		})
	}
	s.asked[0], s.asked = nil, s.asked[1:]
	s.Env.Budget.Release(len(a.bytes))
	if !a.silent {
		s.pending = append(s.pending, a.Reply...)
	}
	s.unasked = append(s.unasked, a)
}
