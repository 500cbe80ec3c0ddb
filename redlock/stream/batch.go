package stream

import (
	"math"
	"net"
	"runtime"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// This file is the writer and the reader of a connection. They work in batches: calls
// that are sent together, with one check of the master's marker behind them.

// write sends the queued calls in one piece, with the check of the marker behind them. It
// does so until the connection ends or the stream stops. It owns conn's writing side.
func (s *Stream) write(conn net.Conn, stop <-chan struct{}) error {
	var buf []byte
	for {
		s.mu.Lock()
		buf, s.out = s.out, buf[:0]
		if (len(buf) > 0 || s.due) && !s.embedded {
			buf = s.appendCheck(buf, time.Now())
			s.due = false
		}
		s.unwritten = 0
		s.mu.Unlock()
		if len(buf) == 0 {
			select {
			case <-s.wake:
				// Let other goroutines add their calls to this batch. If there are none,
				// this costs nothing.
				runtime.Gosched()
				continue
			case <-stop:
				return nil
			}
		}
		conn.SetWriteDeadline(time.Now().Add(s.stall()))
		if _, err := conn.Write(buf); err != nil {
			return err
		}
		if cap(buf) > maxIdleBuffer {
			buf = nil
		}
	}
}

// appendCheck appends, with s.mu held, the check that ends a batch.
func (s *Stream) appendCheck(dst []byte, now time.Time) []byte {
	check := Call{Replies: checkReplies, check: true, sent: now, slept: s.owner.Suspended()}
	check.role = s.sole && now.Sub(s.askedInfo) < infoPause
	s.calls = append(s.calls, check)
	dst = append(dst, s.marker...)
	if check.role {
		return append(dst, timeAndRole...)
	}
	s.askedInfo = now
	return append(dst, timeAndInfo...)
}

// askInfo makes every batch from now on ask INFO. If that is a change, it asks at once.
func (s *Stream) askInfo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sole {
		return
	}
	s.sole, s.due = false, true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// maxIdleBuffer is the largest buffer that an idle writer keeps.
const maxIdleBuffer = 256 << 10

// read matches replies to calls until the connection ends. It answers a batch after it
// has read the check. Until then nobody knows whether the votes of the batch count.
func (s *Stream) read(r *resp.Reader) error {
	var batch []Call
	var replies [][]byte
	for {
		first, err := r.Wait()
		if err != nil {
			return err
		}
		if !first {
			continue
		}
		if batch = s.batch(batch[:0]); len(batch) == 0 {
			return resp.ErrUnasked
		}
		n := 0
		for i := range batch {
			n += batch[i].skip + batch[i].Replies
		}
		if replies, err = r.Next(replies[:0], n); err != nil {
			return err
		}
		j := Judgement{Votes: true, Covers: math.MaxInt64}
		if last := &batch[len(batch)-1]; last.check {
			j = s.judge(last, replies[n-checkReplies:], time.Now())
		}
		s.answer(batch, replies, j)
		clear(batch)
		r.Discard()
	}
}

// batch appends the oldest calls up to their check to dst, and leaves them in place. It
// appends nothing if no check was sent, because then none of them has an answer. Calls of
// an embedded server have no check, so batch appends one call.
func (s *Stream) batch(dst []Call) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.calls[s.head:]
	if s.embedded {
		return append(dst, waiting[:min(1, len(waiting))]...)
	}
	check := slices.IndexFunc(waiting, func(c Call) bool { return c.check })
	return append(dst, waiting[:check+1]...)
}
